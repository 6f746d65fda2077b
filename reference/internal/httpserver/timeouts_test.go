package httpserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

func TestHeaderSectionIsBounded(t *testing.T) {
	s := serve(t, hello, httpserver.Options{})
	for size, status := range map[int]int{60_000: 200, 80_000: 431} {
		c := s.dial(t)
		go fmt.Fprintf(c, "GET /%s HTTP/1.1\r\nHost: x\r\n\r\n", strings.Repeat("x", size))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		must(t, err)
		if resp.StatusCode != status {
			t.Errorf("a target of %d octets: status %d, want %d", size, resp.StatusCode, status)
		}
	}
}

// A client that is slow is cut off, wherever it stops, by the one limit that is
// for it. The other limits are longer than the test waits for its connection.
func TestSlowClients(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil && r.ContentLength > 0 {
			t.Error("the handler reads a body that has not come")
		}
	})
	const short, long = 50 * time.Millisecond, time.Hour
	for name, test := range map[string]struct {
		octets             string
		header, read, idle time.Duration
	}{
		"before the request":  {"", short, long, long},
		"in the request line": {"GET /", short, long, long},
		"in the header":       {"GET / HTTP/1.1\r\nHost: x\r\nX: ", short, long, long},
		"in the body":         {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nx", long, short, long},
		"after the request":   {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", long, long, short},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, h, httpserver.Options{
				ReadHeaderTimeout: test.header, ReadTimeout: test.read, WriteTimeout: long, IdleTimeout: test.idle,
			}).dial(t)
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
	s := serve(t, h, httpserver.Options{WriteTimeout: 50 * time.Millisecond})
	c := s.dial(t)
	fmt.Fprint(c, "GET / HTTP/1.0\r\n\r\n")
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the response goes on until %v, want it cut off", err)
	}
}

// A client that stops reading is cut off in HTTP/2 too, where a response that cannot be
// written has no place for the frame that resets it.
func TestClientThatStopsReadingInHTTP2(t *testing.T) {
	o := certificate(t)
	o.WriteTimeout = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		const requests = 16 // more than one response that is stuck
		s := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}), o)
		l, _, _ := serveOnPipe(t, s)
		stop := make(chan bool)
		transport := &http.Transport{
			TLSClientConfig: insecure(), ForceAttemptHTTP2: true, MaxConnsPerHost: 1,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return &stoppingConn{Conn: l.connect(), left: 64 << 10, stop: stop}, nil
			},
		}
		for range requests {
			go func() {
				r, err := http.NewRequestWithContext(t.Context(), "GET", "https://server", nil)
				if err != nil {
					t.Error(err)
					return
				}
				if resp, err := transport.RoundTrip(r); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}()
		}
		time.Sleep(time.Minute)
		if stats := s.Stats(); stats.Open != stats.Idle {
			t.Errorf("after a minute the connection still has a request running: %+v; want it cut off after %v", stats, o.WriteTimeout)
		}
		close(stop)
		transport.CloseIdleConnections()
	})
}

// stoppingConn reads some bytes, and then nothing until stop is closed.
type stoppingConn struct {
	net.Conn
	left int64
	stop chan bool
}

func (c *stoppingConn) Read(p []byte) (int, error) {
	if atomic.LoadInt64(&c.left) <= 0 {
		<-c.stop
	}
	n, err := c.Conn.Read(p)
	atomic.AddInt64(&c.left, int64(-n))
	return n, err
}
