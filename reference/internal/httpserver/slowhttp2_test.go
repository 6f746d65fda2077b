package httpserver_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A client that stops reading is cut off in HTTP/2 too, where a response that cannot be
// written has no place for the frame that resets it.
func TestClientThatStopsReadingInHTTP2(t *testing.T) {
	t.Parallel()
	o := certificate(t)
	o.WriteTimeout = 2 * time.Second // also for the handshake
	const requests = 16              // more than the buffers of a connection hold
	ended := make(chan bool, requests)
	var begun sync.WaitGroup
	begun.Add(requests)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- true }()
		begun.Done()
		begun.Wait() // before the connection is cut off
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}), o)
	stop := make(chan bool)
	defer close(stop)
	transport := &http.Transport{
		TLSClientConfig: insecure(), ForceAttemptHTTP2: true, MaxConnsPerHost: 1,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return &stoppingConn{Conn: s.dial(t), left: 64 << 10, stop: stop}, nil
		},
	}
	defer transport.CloseIdleConnections()
	for range requests {
		go func() {
			r, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+s.addr, nil)
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
	patience := time.After(time.Minute)
	for n := range requests {
		select {
		case <-ended:
		case <-patience:
			t.Fatalf("after a minute, %d of %d responses have ended, want that they are cut off after %v", n, requests, o.WriteTimeout)
		}
	}
	for range 600 {
		if stats := s.Stats(); stats.Open == stats.Idle {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("the connection still has a request running: %+v", s.Stats())
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
