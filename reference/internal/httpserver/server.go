package httpserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// maxHeader bounds the header section with the request line. It is large enough for
// targets that the handler answers with 414, which net/http does not do.
const maxHeader = 64 << 10

// maxStreams bounds the requests that run at once on one HTTP/2 connection.
const maxStreams = 128

// Server serves one handler, which [Server.Reload] can replace. It is made by [New],
// and is safe for concurrent use.
type Server struct {
	handler  atomic.Pointer[http.Handler]
	cert     atomic.Pointer[certificate] // nil without TLS
	ready    atomic.Bool
	draining atomic.Bool // responses close their connection
	onReady  func()

	mu      sync.Mutex // guards the fields below, and changes of those above
	options Options
	limited *limitListener // nil before Serve
}

// New returns a server of handler. It reads the certificate, so that an error in it is
// found before anything is served.
func New(handler http.Handler, o Options) (*Server, error) {
	if handler == nil {
		return nil, errNilHandler
	}
	s := &Server{onReady: o.OnReady}
	if err := s.take(handler, o.withDefaults()); err != nil {
		return nil, err
	}
	return s, nil
}

// take sets the handler and the options, or nothing if it returns an error. The caller
// holds s.mu or is alone.
func (s *Server) take(handler http.Handler, o Options) error {
	var cert *certificate
	if o.CertFile != "" {
		var err error
		if cert, err = loadCertificate(o.CertFile, o.KeyFile, o.Logger); err != nil {
			return fmt.Errorf("server: %w", err)
		}
	}
	s.handler.Store(&handler)
	s.cert.Store(cert)
	s.options = o
	return nil
}

// serveCurrent serves a request with the handler that is in force when it begins. While the
// server drains, the response closes its connection; in HTTP/2, net/http sends GOAWAY for
// this field.
func (s *Server) serveCurrent(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() || endsAmbiguously(r) {
		w.Header().Set("Connection", "close")
	}
	(*s.handler.Load()).ServeHTTP(w, r)
}

// Ready reports whether the server serves and is not draining.
func (s *Server) Ready() bool { return s.ready.Load() }

// Serve serves connections of l until ctx ends, and then until running requests are
// answered. It closes l, and returns nil if no request was cut off. The context of a
// request does not end with ctx, but when the drain timeout ends.
//
// A server without TLS and without trusted proxies refuses a listener that is not on
// loopback, unless [Options.PlainHTTP] allows it: bearer tokens must not be sent
// unencrypted (RFC 6750 section 5.3).
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	base, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	hs, err := s.start(base, l)
	if err != nil {
		l.Close()
		return err
	}
	defer s.limited.Close()

	ended := make(chan error, 1)
	go func() {
		if hs.TLSConfig != nil {
			ended <- hs.ServeTLS(s.limited, "", "")
		} else {
			ended <- hs.Serve(s.limited)
		}
	}()
	s.ready.Store(true)
	defer s.ready.Store(false)
	if s.onReady != nil {
		s.onReady()
	}

	select {
	case err := <-ended:
		hs.Close()
		return fmt.Errorf("server: %w", err)
	case <-ctx.Done():
	}
	return s.drain(hs, ended)
}

// start makes what serves l. The contexts of requests are from base.
func (s *Server) start(base context.Context, l net.Listener) (*http.Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.options
	if err := o.checkExposure(l.Addr()); err != nil {
		return nil, err
	}
	s.limited = newLimitListener(l, o)
	hs := &http.Server{
		Handler: http.HandlerFunc(s.serveCurrent),
		// The handler answers OPTIONS *, with its header fields.
		DisableGeneralOptionsHandler: true,

		ReadHeaderTimeout: o.ReadHeaderTimeout,
		ReadTimeout:       o.ReadTimeout,
		WriteTimeout:      o.WriteTimeout,
		IdleTimeout:       o.IdleTimeout,
		MaxHeaderBytes:    maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams,
			// In HTTP/2, WriteTimeout only resets a stream. If the client reads nothing, the
			// reset cannot be sent either, and all requests of the connection would wait.
			WriteByteTimeout: o.WriteTimeout,
		},

		ErrorLog:    log.New(errorLog{o.Logger}, "", 0),
		ConnContext: withFraming,
		ConnState:   s.limited.stateChanged,
		BaseContext: func(net.Listener) context.Context { return base },
	}
	if o.CertFile != "" {
		hs.TLSConfig = &tls.Config{
			MinVersion: tls.VersionTLS12,
			GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
				return s.cert.Load().get(hello)
			},
		}
	}
	return hs, nil
}

// drain shuts hs down, which still accepts connections.
func (s *Server) drain(hs *http.Server, ended <-chan error) error {
	s.ready.Store(false)
	s.mu.Lock()
	delay, timeout, logger := s.options.DrainDelay, s.options.DrainTimeout, s.options.Logger
	s.mu.Unlock()
	if delay > 0 {
		// SetKeepAlivesEnabled would close idle connections now, while load balancers
		// still send requests on them. Instead every response closes its connection.
		s.draining.Store(true)
		select {
		case <-time.After(delay):
		case err := <-ended:
			logger.Error("connections are no longer accepted", slog.Any("error", err))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := hs.Shutdown(ctx); err != nil {
		hs.Close()
		return fmt.Errorf("server: requests still ran after %v and were cut off: %w", timeout, err)
	}
	return nil
}

// checkExposure refuses plain HTTP on an address that other machines can reach.
func (o Options) checkExposure(addr net.Addr) error {
	if o.CertFile != "" || o.PlainHTTP || len(o.TrustedProxies) > 0 {
		return nil
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() {
		return nil // other kinds of sockets are local
	}
	return fmt.Errorf("server: plain HTTP on %v would send API keys unencrypted; "+
		"set a certificate and its key, or trusted proxies, or listen on a loopback address", addr)
}

// Stats are the connections of a server. Open and Idle are those of now, the others
// only grow.
type Stats struct {
	Open    int   // open connections
	Idle    int   // those of them without a running request
	Refused int64 // connections closed at once because their network has too many
	Evicted int64 // idle connections closed to make room for new ones
	Waited  int64 // connections that waited because every open one had a running request
}

// Stats returns the present numbers. They are zero before Serve.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	l := s.limited
	s.mu.Unlock()
	if l == nil {
		return Stats{}
	}
	stats := Stats{Refused: l.refused.total.Load(), Evicted: l.evicted.total.Load(), Waited: l.waiting.total.Load()}
	l.mu.Lock()
	defer l.mu.Unlock()
	stats.Open, stats.Idle = l.open, l.idle.Len()
	return stats
}

// An errorLog is what net/http logs to.
type errorLog struct{ logger *slog.Logger }

// Write logs one message. Failed TLS handshakes are at level Debug: scanners cause them
// all day. A client that speaks HTTP/1 after it agreed on HTTP/2 greets with its target, which
// is left out: it can have a secret.
func (l errorLog) Write(message []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.HasPrefix(message, []byte("http: TLS handshake error")) {
		level = slog.LevelDebug
	}
	text, _, _ := bytes.Cut(bytes.TrimSpace(message), []byte(": bogus greeting"))
	l.logger.Log(context.Background(), level, "http server", slog.String("message", string(text)))
	return len(message), nil
}
