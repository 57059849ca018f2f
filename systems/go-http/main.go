// Go's net/http: a server for requests and uploads.
//
// Contract: GET / answers "ok"; POST /upload counts the bytes of the body as they arrive, keeps none of them, and
// answers the count.
//
// usage: program PORT
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: program PORT")
		os.Exit(1)
	}
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		io.WriteString(answer, "ok")
	})
	http.HandleFunc("/upload", func(answer http.ResponseWriter, request *http.Request) {
		count, err := io.Copy(io.Discard, request.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the peer has disconnected: end only this connection
		}
		fmt.Fprint(answer, count)
	})
	if err := http.ListenAndServe("127.0.0.1:"+os.Args[1], nil); err != nil {
		fmt.Fprintln(os.Stderr, "cannot serve:", err)
		os.Exit(1)
	}
}
