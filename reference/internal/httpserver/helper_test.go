package httpserver_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

var must = testcheck.NoError

// running is a server that serves, and how to end it.
type running struct {
	*httpserver.Server
	addr  string
	stop  context.CancelFunc
	ended chan error // what Serve returned
}

func serve(t *testing.T, h http.Handler, o httpserver.Options) *running {
	t.Helper()
	return serveOn(t, h, o, func(l net.Listener) net.Listener { return l })
}

// serveOn is serve with a listener that wrap has changed.
func serveOn(t *testing.T, h http.Handler, o httpserver.Options, wrap func(net.Listener) net.Listener) *running {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := httpserver.New(h, o)
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Server: s, addr: l.Addr().String(), stop: stop, ended: make(chan error, 1)}
	go func() {
		r.ended <- s.Serve(ctx, wrap(l))
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

// certificate writes a certificate and its key, and returns the options with them.
func certificate(t *testing.T) httpserver.Options {
	t.Helper()
	dir := t.TempDir()
	o := httpserver.Options{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	cert, key := httpserver.Issue(t, "server")
	httpserver.Put(t, o.CertFile, cert)
	httpserver.Put(t, o.KeyFile, key)
	return o
}

// insecure is a client configuration that takes any certificate.
func insecure() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }
