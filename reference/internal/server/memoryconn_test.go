package server

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"
)

// A memoryListener accepts one connection, which is in memory.
type memoryListener struct {
	conn   chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func newMemoryListener() *memoryListener {
	return &memoryListener{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
}

// measure sends a request again and again.
func (l *memoryListener) measure(b *testing.B, r *http.Request) {
	var text bytes.Buffer
	if err := r.Clone(b.Context()).Write(&text); err != nil {
		b.Fatal(err)
	}
	c := &memoryConn{request: text.Bytes(), left: b.N, ended: make(chan struct{})}
	c.changed.L = &c.mu
	b.ReportAllocs()
	b.ResetTimer()
	l.conn <- c
	<-c.ended
	b.StopTimer()
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return memoryAddr }

var memoryAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}

// A memoryConn is a client that sends a request after each response. A Read that began
// during a request waits for its deadline, as it would for a client that waits for its
// response.
type memoryConn struct {
	request []byte
	ended   chan struct{} // closed after the last response

	mu      sync.Mutex
	changed sync.Cond
	left    int  // requests
	sent    int  // bytes of the present request
	running bool // a request has been read, and its response has not been written
	expired bool // the read deadline is in the past
	closed  bool
}

func (c *memoryConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for wait := c.running || c.left == 0; !c.expired && !c.closed; c.changed.Wait() {
		if !wait {
			n := copy(p, c.request[c.sent:])
			if c.sent += n; c.sent == len(c.request) {
				c.left--
				c.sent, c.running = 0, true
			}
			return n, nil
		}
	}
	if c.closed {
		return 0, io.EOF
	}
	return 0, os.ErrDeadlineExceeded
}

func (c *memoryConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
	if c.left == 0 {
		close(c.ended)
	}
	return len(p), nil
}

func (c *memoryConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expired = !t.IsZero() && t.Before(time.Now())
	c.changed.Broadcast()
	return nil
}

func (c *memoryConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.changed.Broadcast()
	return nil
}

func (c *memoryConn) SetDeadline(t time.Time) error    { return c.SetReadDeadline(t) }
func (c *memoryConn) SetWriteDeadline(time.Time) error { return nil }
func (c *memoryConn) LocalAddr() net.Addr              { return memoryAddr }
func (c *memoryConn) RemoteAddr() net.Addr             { return memoryAddr }
