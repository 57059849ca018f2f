// Go's net/http: a server for requests, uploads and streams, plain or over crypto/tls, in HTTP/1.1 or in HTTP/2.
//
// Contract: GET / answers "ok"; POST /upload counts the bytes of the body as they arrive, keeps none of them, and
// answers the count; GET /bytes answers a text of -answer-size bytes; GET /events/N?gap=10ms&size=100 sends N
// server-sent events.
package main

import (
	"compress/gzip"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

var (
	address    = flag.String("address", "127.0.0.1", "the address at which it listens")
	port       = flag.Int("port", 0, "the port on which it listens")
	secured    = flag.String("tls", "off", "off: plain; otherwise over TLS 1.2 and 1.3")
	cert       = flag.String("cert", "", "the file with its certificate")
	key        = flag.String("key", "", "the file with its key")
	tickets    = flag.Bool("tickets", true, "give tickets for sessions")
	growing    = flag.Bool("growing-records", true, "begin with small TLS records")
	answerSize = flag.Int("answer-size", 0, "the bytes of the text at /bytes; 0: it is not found")
	version    = flag.String("http", "1.1", "2: HTTP/2 in plain text as well, without being asked; over TLS it is always offered")
	compressed = flag.String("gzip", "off", "on: compress the text for those who accept it")
)

func main() {
	flag.Parse()
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
	http.HandleFunc("/events/", events)
	http.HandleFunc("/bytes", bytes(makeText(*answerSize)))
	server := &http.Server{Addr: net.JoinHostPort(*address, strconv.Itoa(*port))}
	if err := serve(server); err != nil {
		fmt.Fprintln(os.Stderr, "cannot serve:", err)
		os.Exit(1)
	}
}

func serve(server *http.Server) error {
	if *secured == "off" {
		if *version == "2" {
			speakPlainHTTP2(server)
		}
		return server.ListenAndServe()
	}
	server.TLSConfig = &tls.Config{
		MinVersion:                  tls.VersionTLS12,
		SessionTicketsDisabled:      !*tickets,
		DynamicRecordSizingDisabled: !*growing,
	}
	return server.ListenAndServeTLS(*cert, *key)
}

// events sends events, and flushes each.
func events(answer http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	count, badCount := strconv.Atoi(strings.TrimPrefix(request.URL.Path, "/events/"))
	gap, badGap := time.ParseDuration(query.Get("gap"))
	size, badSize := strconv.Atoi(query.Get("size"))
	flusher, canFlush := answer.(http.Flusher)
	if badCount != nil || badGap != nil || badSize != nil || !canFlush {
		http.Error(answer, "not as /events/20?gap=10ms&size=100", http.StatusBadRequest)
		return
	}
	answer.Header().Set("Content-Type", "text/event-stream")
	answer.Header().Set("Cache-Control", "no-cache")
	data := strings.Repeat("x", size)
	for id := 1; id <= count; id++ {
		if id > 1 {
			time.Sleep(gap)
		}
		if _, err := fmt.Fprintf(answer, "id: %d\ndata: %s\n\n", id, data); err != nil {
			return // the peer has disconnected
		}
		flusher.Flush()
	}
}

// bytes answers the text, compressed anew for each answer if that is asked for.
func bytes(text []byte) http.HandlerFunc {
	return func(answer http.ResponseWriter, request *http.Request) {
		if len(text) == 0 {
			http.NotFound(answer, request)
			return
		}
		header := answer.Header()
		header.Set("Content-Type", "text/plain")
		if *compressed == "off" || !strings.Contains(request.Header.Get("Accept-Encoding"), "gzip") {
			header.Set("Content-Length", strconv.Itoa(len(text)))
			answer.Write(text)
			return
		}
		header.Set("Content-Encoding", "gzip")
		packer := packers.Get().(*gzip.Writer)
		defer packers.Put(packer)
		packer.Reset(answer)
		packer.Write(text)
		packer.Close()
	}
}

// packers are used again, because a new one takes 800 KB.
var packers = sync.Pool{New: func() any {
	packer, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level of nginx
	return packer
}}
