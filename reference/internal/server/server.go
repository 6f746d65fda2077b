package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// maxHeader bounds the header section with the request line. It is large enough for
// targets that the handler answers with 414, which net/http does not do.
const maxHeader = 64 << 10

// maxStreams bounds the requests that run at once on one HTTP/2 connection.
const maxStreams = 128

// Server serves one handler. It is made by [New], and is safe for concurrent use.
type Server struct {
	handler http.Handler
	options Options
	cert    *certificate // nil without TLS
	ready   atomic.Bool

	draining atomic.Bool // responses close their connection
}

// New returns a server of handler. It reads the certificate, so that an error in it is
// found before anything is served.
func New(handler http.Handler, o Options) (*Server, error) {
	if handler == nil {
		return nil, errors.New("server: the handler must not be nil")
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &Server{handler: handler, options: o.withDefaults()}
	s.limitToOpenFiles()
	if o.CertFile != "" {
		var err error
		if s.cert, err = loadCertificate(o.CertFile, o.KeyFile, s.options.Logger); err != nil {
			return nil, fmt.Errorf("server: %w", err)
		}
	}
	return s, nil
}

// reservedFiles is how many open files are reserved for other uses than connections,
// such as the database.
const reservedFiles = 128

// limitToOpenFiles lowers MaxConns to the open files that the process may have.
// Otherwise Accept would fail before MaxConns is reached, and no idle connection would
// be closed.
func (s *Server) limitToOpenFiles() {
	most := max(openFiles()-reservedFiles, 1)
	if s.options.MaxConns <= most {
		return
	}
	s.options.Logger.Warn("lowered the limit on connections, because the process may not open enough files; raise ulimit -n",
		slog.String("setting", "max_connections"), slog.Int("configured", s.options.MaxConns), slog.Int("limit", most))
	s.options.MaxConns = most
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
	if err := s.checkExposure(l.Addr()); err != nil {
		l.Close()
		return err
	}
	base, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	limited := newLimitListener(l, s.options)
	defer limited.Close()
	hs := s.httpServer(base)
	hs.ConnState = limited.stateChanged

	ended := make(chan error, 1)
	go func() {
		if s.cert != nil {
			ended <- hs.ServeTLS(limited, "", "")
		} else {
			ended <- hs.Serve(limited)
		}
	}()
	s.ready.Store(true)
	defer s.ready.Store(false)
	if s.options.OnReady != nil {
		s.options.OnReady()
	}

	select {
	case err := <-ended:
		hs.Close()
		return fmt.Errorf("server: %w", err)
	case <-ctx.Done():
	}
	return s.drain(hs, ended)
}

// drain shuts hs down, which still accepts connections.
func (s *Server) drain(hs *http.Server, ended <-chan error) error {
	s.ready.Store(false)
	if s.options.DrainDelay > 0 {
		// SetKeepAlivesEnabled would close idle connections now, while load balancers
		// still send requests on them. Instead every response closes its connection.
		s.draining.Store(true)
		select {
		case <-time.After(s.options.DrainDelay):
		case <-ended:
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.options.DrainTimeout)
	defer cancel()
	if err := hs.Shutdown(ctx); err != nil {
		hs.Close()
		return fmt.Errorf("server: requests still ran after %v and were cut off: %w", s.options.DrainTimeout, err)
	}
	return nil
}

// closeWhileDraining makes responses close their connection while the server drains.
// In HTTP/2, net/http sends GOAWAY for this field.
func (s *Server) closeWhileDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) httpServer(base context.Context) *http.Server {
	hs := &http.Server{
		Handler: s.closeWhileDraining(closeAmbiguous(s.handler)),
		// The handler answers OPTIONS *, with its header fields.
		DisableGeneralOptionsHandler: true,

		ReadHeaderTimeout: s.options.ReadHeaderTimeout,
		ReadTimeout:       s.options.ReadTimeout,
		WriteTimeout:      s.options.WriteTimeout,
		IdleTimeout:       s.options.IdleTimeout,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},

		ErrorLog:    newErrorLog(s.options.Logger),
		ConnContext: withFraming,
		BaseContext: func(net.Listener) context.Context { return base },
	}
	if s.cert != nil {
		hs.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.cert.get}
	}
	return hs
}

// checkExposure refuses plain HTTP on an address that other machines can reach.
func (s *Server) checkExposure(addr net.Addr) error {
	if s.cert != nil || s.options.PlainHTTP || len(s.options.TrustedProxies) > 0 {
		return nil
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() {
		return nil // other kinds of sockets are local
	}
	return fmt.Errorf("server: plain HTTP on %v would send API keys unencrypted; "+
		"set a certificate and its key, or trusted proxies, or listen on a loopback address", addr)
}
