package httpserver_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/reference/internal/certtest"
	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

var must = testcheck.NoError

// hello answers with the protocol and the target.
var hello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s", r.Proto, r.RequestURI)
})

// newServer returns a server, which logs nothing unless o says so.
func newServer(t *testing.T, h http.Handler, o httpserver.Options) *httpserver.Server {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := httpserver.New(h, o)
	must(t, err)
	return s
}

// running is a server that serves, and how to end it.
type running struct {
	*httpserver.Server
	addr  string
	stop  context.CancelFunc
	ended chan error // what Serve returned
}

func serve(t *testing.T, h http.Handler, o httpserver.Options) *running {
	t.Helper()
	s := newServer(t, h, o)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Server: s, addr: l.Addr().String(), stop: stop, ended: make(chan error, 1)}
	go func() {
		r.ended <- s.Serve(ctx, l)
		close(r.ended)
	}()
	t.Cleanup(func() {
		stop()
		<-r.ended
	})
	return r
}

// dial opens a connection that ends the test rather than hang.
func (r *running) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.addr)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, c.SetDeadline(time.Now().Add(time.Minute)))
	return c
}

// dialTLS is dial with a handshake for HTTP/1.1.
func (r *running) dialTLS(t *testing.T) net.Conn {
	t.Helper()
	c := tls.Client(r.dial(t), insecure())
	must(t, c.Handshake())
	return c
}

// certificate writes a new certificate and its key, and returns the options with them.
func certificate(t *testing.T) httpserver.Options {
	t.Helper()
	cert, key := certtest.New(t)
	dir := t.TempDir()
	o := httpserver.Options{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	must(t, os.WriteFile(o.CertFile, cert, 0o600))
	must(t, os.WriteFile(o.KeyFile, key, 0o600))
	return o
}

// insecure is a client configuration that takes any certificate.
func insecure() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// text returns a handler that answers with a text.
func text(s string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, s) })
}

// receive reads a response and its body.
func receive(t *testing.T, c net.Conn) (resp *http.Response, body string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	must(t, err)
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp, string(text)
}

// exchange sends a request on c and returns the response and its body.
func exchange(t *testing.T, c net.Conn) (*http.Response, string) {
	t.Helper()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	return receive(t, c)
}

// request sends a request on c and reports whether it was answered.
func request(c net.Conn) bool {
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return false
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil
}

// isClosed reports whether the server closes c. It waits for that until the
// deadline of c.
func isClosed(c net.Conn) bool {
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || strings.Contains(fmt.Sprint(err), "reset")
}

// serveInBubble serves on a listener in memory until stop is called, or the test ends.
func serveInBubble(t *testing.T, o httpserver.Options) (s *httpserver.Server, l *pipeListener, stop func(), ended chan struct{}) {
	t.Helper()
	s = newServer(t, hello, o)
	l, stop, ended = serveOnPipe(t, s)
	return s, l, stop, ended
}

// serveOnPipe serves on a listener in memory, in a bubble. The server must end well, at
// the latest with the test.
func serveOnPipe(t *testing.T, s *httpserver.Server) (l *pipeListener, stop func(), ended chan struct{}) {
	t.Helper()
	l = newPipeListener()
	ctx, stop := context.WithCancel(t.Context())
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Serve(ctx, l); err != nil {
			t.Errorf("Serve: %v", err)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	synctest.Wait()
	return l, stop, ended
}

// pipeListener is a listener without a network. Its connections come from one
// address.
type pipeListener struct {
	from   net.IP
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newPipeListener() *pipeListener {
	l := &pipeListener{from: net.IPv4(192, 0, 2, 1), conns: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

func (l *pipeListener) connect() net.Conn {
	near, far := net.Pipe()
	l.conns <- farConn{far, &net.TCPAddr{IP: l.from, Port: 1}}
	return near
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.close()
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

type farConn struct {
	net.Conn
	from net.Addr
}

func (c farConn) RemoteAddr() net.Addr { return c.from }
