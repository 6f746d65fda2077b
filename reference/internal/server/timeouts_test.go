package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/server"
)

func TestHeaderSectionIsBounded(t *testing.T) {
	s := serve(t, hello, server.Options{})
	for size, status := range map[int]int{60_000: 200, 80_000: 431} {
		c := s.dial(t)
		go fmt.Fprintf(c, "GET /%s HTTP/1.1\r\nHost: x\r\n\r\n", strings.Repeat("x", size))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != status {
			t.Errorf("a target of %d octets: status %d, want %d", size, resp.StatusCode, status)
		}
	}
}

// A client that is slow is cut off, wherever it stops, by the one limit that is
// for it. The other limits are longer than the test waits.
func TestSlowClients(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil && r.ContentLength > 0 {
			t.Error("the handler reads a body that has not come")
		}
	})
	const short, patience = 50 * time.Millisecond, 4 * time.Second
	for name, test := range map[string]struct {
		octets  string
		options server.Options
	}{
		"before the request":  {"", server.Options{ReadHeaderTimeout: short}},
		"in the request line": {"GET /", server.Options{ReadHeaderTimeout: short}},
		"in the header":       {"GET / HTTP/1.1\r\nHost: x\r\nX: ", server.Options{ReadHeaderTimeout: short}},
		"in the body":         {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nx", server.Options{ReadTimeout: short}},
		"after the request":   {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", server.Options{IdleTimeout: short}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, h, test.options).dial(t)
			if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(c, test.octets)
			if _, err := io.Copy(io.Discard, c); err != nil {
				t.Errorf("%v, want the server to close the connection", err)
			}
		})
	}
}

// A handler that is slow is cut off as well.
func TestSlowResponses(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	s := serve(t, h, server.Options{WriteTimeout: 50 * time.Millisecond})
	c := s.dial(t)
	fmt.Fprint(c, "GET / HTTP/1.0\r\n\r\n")
	begin := time.Now()
	_, _ = io.Copy(io.Discard, c)
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("the response ended after %v, want it cut off", took)
	}
}
