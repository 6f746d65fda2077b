package httpserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
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
	cert     atomic.Pointer[tls.Certificate] // nil without TLS
	ready    atomic.Bool
	draining atomic.Bool // responses close their connection
	onReady  func()

	mu          sync.Mutex // guards the fields below, and changes of those above
	options     Options
	connections *connections // nil before Serve
}

// New returns a server of handler. It reads the certificate, so that an error in it is
// found before anything is served.
func New(handler http.Handler, o Options) (*Server, error) {
	s := &Server{onReady: o.OnReady}
	if err := s.set(handler, o.withDefaults()); err != nil {
		return nil, err
	}
	return s, nil
}

// set changes the handler, the options and the certificate, or nothing if it returns an error.
// The caller holds s.mu or is alone.
func (s *Server) set(handler http.Handler, o Options) error {
	if handler == nil {
		return errors.New("server: the handler must not be nil")
	}
	if o.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return fmt.Errorf("server: certificate: %w", err)
		}
		s.cert.Store(&cert)
	}
	s.handler.Store(&handler)
	s.options = o
	return nil
}

// Reload replaces the handler and the options while the server serves, and reads the
// certificate again. Running requests end with the old handler. OnReady, Logger and the
// timeouts of reading, writing and idling stay as they are; TLS must not be turned on or off.
// Connections over a lower limit are closed, once they are idle, when the next connection
// arrives.
//
// If Reload returns an error, such as for a certificate that cannot be loaded, nothing has
// changed.
func (s *Server) Reload(handler http.Handler, o Options) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.Logger = s.options.Logger
	o = o.withDefaults()
	if err := s.set(handler, o); err != nil {
		return err
	}
	if s.connections != nil {
		s.connections.setLimits(o)
	}
	return nil
}

// Ready reports whether the server serves and is not draining.
func (s *Server) Ready() bool { return s.ready.Load() }

// Stats returns the present numbers. They are zero before Serve.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connections == nil {
		return Stats{}
	}
	return s.connections.Stats()
}

// CertificateExpires returns the time at which the certificate in use expires, or the
// zero time without TLS.
func (s *Server) CertificateExpires() time.Time {
	if cert := s.cert.Load(); cert != nil {
		return cert.Leaf.NotAfter
	}
	return time.Time{}
}

// Serve serves connections of l until ctx ends, and then until running requests are
// answered. It closes l, and returns nil if no request was cut off. The context of a
// request does not end with ctx, but when the drain timeout ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	base, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	hs := s.start(base, l)
	defer s.connections.Close()

	ended := make(chan error, 1)
	go func() {
		if hs.TLSConfig != nil {
			ended <- hs.ServeTLS(s.connections, "", "")
		} else {
			ended <- hs.Serve(s.connections)
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
func (s *Server) start(base context.Context, l net.Listener) *http.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.options
	s.connections = limitConnections(l, o)
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
		ConnState:   s.connections.stateChanged,
		BaseContext: func(net.Listener) context.Context { return base },
	}
	if o.CertFile != "" {
		hs.TLSConfig = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.cert.Load(), nil },
		}
	}
	return hs
}

// serveCurrent serves a request with the handler that is in force when it begins.
//
// The connection closes after a request whose end two readers could see in different
// places (RFC 9112 section 6.1): net/http does not say whether a chunked request had a
// Content-Length too, nor whether one of HTTP/1.0 had a Transfer-Encoding. It also closes
// while the server drains; in HTTP/2, net/http sends GOAWAY for this field.
func (s *Server) serveCurrent(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) || s.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	(*s.handler.Load()).ServeHTTP(w, r)
}

// drain shuts hs down, which still accepts connections when drain begins.
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

// An errorLog is what net/http logs to.
type errorLog struct{ logger *slog.Logger }

// Write logs one message. Failed TLS handshakes are at level Debug: scanners cause them
// all day. If a client speaks HTTP/1 after it agreed on HTTP/2, the message quotes the target,
// which can have a secret, so the quotation is left out.
func (l errorLog) Write(message []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.HasPrefix(message, []byte("http: TLS handshake error")) {
		level = slog.LevelDebug
	}
	text, _, _ := bytes.Cut(bytes.TrimSpace(message), []byte(": bogus greeting"))
	l.logger.Log(context.Background(), level, "http server", slog.String("message", string(text)))
	return len(message), nil
}
