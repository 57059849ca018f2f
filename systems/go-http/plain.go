//go:build go1.24

package main

import "net/http"

// speakPlainHTTP2 lets the server speak HTTP/2 in plain text.
func speakPlainHTTP2(server *http.Server) {
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
}
