package wire

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// start is the time at which each answer begins, 17 seconds before the next minute. The
// clock moves on only while a test sleeps.
var start = time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC)

// plainRequest is what is sent if an answer needs no other request.
const plainRequest = "GET /v1/pets HTTP/1.1\nHost: api.example.com\n\n"

// exchange sends the request of an answer over TCP, and returns the bytes of the response.
// The bubble makes the time stand still for the server, its Date field included: a
// goroutine that waits for the network keeps the clock of the bubble from moving.
func exchange(t *testing.T, a answer) (response []byte) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(start))
		srv := httptest.NewServer(a.handler(t))
		defer srv.Close()
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		request := a.sent()
		if _, err := io.WriteString(conn, strings.ReplaceAll(request, "\n", "\r\n")+a.rest); err != nil {
			t.Fatal(err)
		}
		var received bytes.Buffer
		method, _, _ := strings.Cut(request, " ")
		reader := bufio.NewReader(io.TeeReader(conn, &received))
		res, err := http.ReadResponse(reader, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("no response: %v", err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatalf("the body of the response: %v", err)
		}
		if n := reader.Buffered(); n > 0 {
			t.Fatalf("%d bytes follow the response", n)
		}
		response = received.Bytes()
	})
	return response
}

// spend sends n requests before the one of the answer, with no connection.
func spend(h http.Handler, n int) {
	for range n {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/pets", nil))
	}
}
