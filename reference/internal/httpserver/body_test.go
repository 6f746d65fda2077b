package httpserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

// A handler that answers without reading the body does not make the client wait until all of
// it has arrived. The client can read the response although it still sends, and the
// connection closes. If the body has arrived, or the handler has read it, the connection stays.
func TestAnAnswerDoesNotWaitForTheBody(t *testing.T) {
	const part = "Host: x\r\nContent-Length: 10\r\n\r\n1"
	refuse := text("no")
	readAll := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})
	for _, tt := range []struct {
		name    string
		h       http.Handler
		request string
		body    string
		closes  bool
	}{
		{"one byte of the body", refuse, "POST / HTTP/1.1\r\n" + part, "no", true},
		{"one byte of a body of GET", refuse, "GET / HTTP/1.1\r\n" + part, "no", true},
		{"one byte in chunks", refuse, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n1", "no", true},
		{"one byte in HTTP/1.0", refuse, "POST / HTTP/1.0\r\n" + part, "no", true},
		{"no byte, after Expect", refuse, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n", "no", true},
		{"a huge body", refuse, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n" + strings.Repeat("x", 100_000), "no", true},
		{"a large response", text(strings.Repeat("no", 50_000)), "POST / HTTP/1.1\r\n" + part, strings.Repeat("no", 50_000), true},
		{"a handler that reads a part", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.CopyN(w, r.Body, 1)
		}), "POST / HTTP/1.1\r\n" + part, "1", true},
		{"the whole body", refuse, "POST / HTTP/1.1\r\n" + part + "234567890", "no", false},
		{"the whole body, which is read", readAll, "POST / HTTP/1.1\r\n" + part + "234567890", "1234567890", false},
		{"no body", readAll, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, tt.h, httpserver.Options{ReadTimeout: time.Hour}).dial(t)
			_, err := io.WriteString(c, tt.request)
			must(t, err)
			if _, body := receive(t, c); body != tt.body {
				t.Errorf("the response is %.20q, want %.20q", body, tt.body)
			}
			if tt.closes {
				if !isClosed(c) {
					t.Error("the connection stays open, want it closed")
				}
			} else if resp, _ := exchange(t, c); resp.StatusCode != 200 {
				t.Errorf("the next request on the connection gets %d", resp.StatusCode)
			}
		})
	}
}

// Where two readers could see different ends of a request, what follows on the connection
// is not read as a request (RFC 9112 section 6.1). Nor is what is left of a body.
func TestAmbiguousRequestsCloseTheConnection(t *testing.T) {
	const both = "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	for name, request := range map[string]string{
		"both":                                 "POST / HTTP/1.1\r\nHost: x\r\n" + both,
		"in chunks, with a handler that reads": "POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
		"Transfer-Encoding in HTTP/1.0":        "POST / HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n",
		"the rest of a body":                   "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n",
		"HTTP/1.0 that keeps its connection":   "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	} {
		served := make(chan string, 10)
		h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/read" {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			served <- r.URL.Path
		})
		c := serve(t, h, httpserver.Options{}).dial(t)
		_, _ = io.WriteString(c, request+"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, _ := receive(t, c)
		_, _ = io.Copy(io.Discard, c)
		if first := <-served; first == "/smuggled" || len(served) > 0 || !resp.Close {
			t.Errorf("%s: the response closes the connection: %v; requests served after the first: %d", name, resp.Close, len(served))
		}
	}
}
