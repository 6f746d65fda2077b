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

// maxHeader bounds the header section with the request line. It leaves room for
// the handler to see targets that it answers with 414, which net/http does not.
const maxHeader = 64 << 10

// maxStreams bounds the requests that run at once on one HTTP/2 connection.
const maxStreams = 128

// Server serves one handler. It is made by [New], and is safe for concurrent use.
type Server struct {
	handler http.Handler
	options Options
	cert    *certificate // nil without TLS
	ready   atomic.Bool

	draining atomic.Bool // responses close their connections
}

// New returns a server of handler. It reads the certificate, so that a mistake
// shows before anything is served.
func New(handler http.Handler, o Options) (*Server, error) {
	if handler == nil {
		return nil, errors.New("server: handler is nil")
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &Server{handler: handler, options: o.withDefaults()}
	s.fitOpenFiles()
	if o.CertFile != "" {
		var err error
		if s.cert, err = loadCertificate(o.CertFile, o.KeyFile, s.options.Logger); err != nil {
			return nil, fmt.Errorf("server: %w", err)
		}
	}
	return s, nil
}

// spareFiles is how many open files are kept for other things than connections,
// such as the database.
const spareFiles = 128

// fitOpenFiles lowers MaxConns to what the process may open. Otherwise Accept would
// fail before the limit is reached, and no idle connection would make room.
func (s *Server) fitOpenFiles() {
	fit := max(openFiles()-spareFiles, 1)
	if s.options.MaxConns <= fit {
		return
	}
	s.options.Logger.Warn("fewer connections than configured: the process may not open enough files; raise its limit (ulimit -n)",
		slog.String("setting", "max_connections"), slog.Int("configured", s.options.MaxConns), slog.Int("limit", fit))
	s.options.MaxConns = fit
}

// Ready reports whether the server serves and is not draining.
func (s *Server) Ready() bool { return s.ready.Load() }

// Serve serves connections of l until ctx ends, and then until the requests under
// way are answered. It closes l, and returns nil if none of them was cut off. A
// request's context does not end with ctx, but when its time to end is over.
//
// A server without TLS and without trusted proxies is refused a listener that is
// not on loopback, unless [Options.PlainHTTP] allows it: bearer tokens must not
// travel in the clear (RFC 6750 section 5.3).
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

// drain ends hs, which is still accepting connections.
func (s *Server) drain(hs *http.Server, ended <-chan error) error {
	s.ready.Store(false)
	if s.options.DrainDelay > 0 {
		// SetKeepAlivesEnabled would cut idle connections now, when load balancers
		// still send requests on them. Instead every response announces the end.
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
		return fmt.Errorf("server: requests were cut off after %v: %w", s.options.DrainTimeout, err)
	}
	return nil
}

// announceEnd has responses say that their connection closes, once the server
// drains. net/http makes a GOAWAY of that field in HTTP/2.
func (s *Server) announceEnd(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) httpServer(base context.Context) *http.Server {
	hs := &http.Server{
		Handler: s.announceEnd(closeAmbiguous(s.handler)),
		// OPTIONS * is the handler's to answer, with its header fields.
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

// checkExposure refuses to send keys in the clear over a network.
func (s *Server) checkExposure(addr net.Addr) error {
	if s.cert != nil || s.options.PlainHTTP || len(s.options.TrustedProxies) > 0 {
		return nil
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() {
		return nil // other kinds of sockets do not leave the machine
	}
	return fmt.Errorf("server: plain HTTP on %v would send API keys in the clear: "+
		"name a certificate and its key, or the trusted proxies in front, or listen on a loopback address", addr)
}
