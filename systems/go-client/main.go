// A client with pools: Go's net/http. A pool is a Transport with at most pool_size connections, all of them kept.
//
// Contract: systems/shared/go.
//
// usage: program
package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"syscall"
	"time"

	"narrows/client"
)

type pool struct {
	transport *http.Transport
	timeout   time.Duration
}

func startPool(size int, timeout time.Duration) client.Pool {
	dialer := &net.Dialer{Timeout: timeout}
	transport := &http.Transport{DialContext: dialer.DialContext, MaxConnsPerHost: size, MaxIdleConnsPerHost: size, DisableCompression: true}
	return &pool{transport, timeout}
}

func (pool *pool) Get(url, id string) (client.Answer, *client.Failure) {
	ctx, cancel := context.WithTimeout(context.Background(), pool.timeout)
	defer cancel()
	var own time.Time
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { own = time.Now() }}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), "GET", url, nil)
	if err != nil {
		return client.Answer{}, &client.Failure{Class: "other", Reason: err}
	}
	request.Header.Set("x-request-id", id)
	answer, err := pool.transport.RoundTrip(request)
	if err != nil {
		return client.Answer{}, failure(err, !own.IsZero())
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return client.Answer{}, failure(err, true)
	}
	return client.Answer{Status: answer.StatusCode, ID: answer.Header.Get("x-request-id"), Body: body, Own: own}, nil
}

// The trace says whether the request had a connection, on which it is sent at once.
func failure(err error, connected bool) *client.Failure {
	var dial *net.OpError
	class := "other"
	switch text := err.Error(); {
	case errors.Is(err, context.DeadlineExceeded) && connected:
		class = "request_timeout"
	case errors.As(err, &dial) && dial.Op == "dial" && dial.Timeout():
		class = "connect_timeout"
	case errors.Is(err, context.DeadlineExceeded):
		class = "pool_wait"
	case errors.Is(err, syscall.ECONNREFUSED):
		class = "connect_refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		class = "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(text, "server closed idle connection"):
		class = "closed_early"
	case strings.Contains(text, "malformed"), strings.Contains(text, "bad Content-Length"):
		class = "protocol"
	}
	return &client.Failure{Class: class, Reason: err}
}

func main() {
	client.Run(startPool)
}
