//go:build !go1.24

package main

import (
	"net/http"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"
)

// speakPlainHTTP2 lets the server speak HTTP/2 in plain text. net/http cannot do that before Go 1.24.
func speakPlainHTTP2(server *http.Server) {
	server.Handler = h2c.NewHandler(http.DefaultServeMux, &http2.Server{})
}
