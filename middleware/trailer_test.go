package middleware_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/animalstore/gatehouse/middleware"
)

// Trailers that a client did not announce reach the handler, which has a copy of the
// request that net/http adds them to.
func TestTrailersOfCopiedRequests(t *testing.T) {
	got := make(chan string, 1)
	srv := httptest.NewServer(middleware.Chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got <- r.Trailer.Get("X-Rows")
	}), middleware.RequestID, middleware.BodyLimit(1<<20, nil)))
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npets\r\n0\r\nX-Rows: 17\r\n\r\n")
	if rows := <-got; rows != "17" {
		t.Errorf("the trailer X-Rows is %q, want 17", rows)
	}
}
