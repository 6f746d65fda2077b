package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// A generation serves the connections that were accepted between two changes of what
// net/http cannot change while it serves: the timeouts, and whether there is TLS.
// When the next generation begins, each HTTP/1.1 connection of this one closes after its
// next response, or when it has been idle for too long, so no request is cut off. An
// HTTP/2 connection stays until it is idle: a request that crosses a GOAWAY fails if the
// client cannot send it again.
type generation struct {
	http    *http.Server
	tls     bool
	feed    *feed
	open    atomic.Int64 // connections
	retired atomic.Bool  // takes no more connections
}

// newGeneration returns a generation with the options of s. The caller holds s.mu.
func (s *Server) newGeneration() *generation {
	g := &generation{feed: newFeed(s.limited.Addr()), tls: s.cert.Load() != nil}
	o := s.options
	g.http = &http.Server{
		Handler: s.closeAfterResponse(g, closeAmbiguous(http.HandlerFunc(s.serveCurrent))),
		// The handler answers OPTIONS *, with its header fields.
		DisableGeneralOptionsHandler: true,

		ReadHeaderTimeout: o.ReadHeaderTimeout,
		ReadTimeout:       o.ReadTimeout,
		WriteTimeout:      o.WriteTimeout,
		IdleTimeout:       o.IdleTimeout,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},

		ErrorLog:    newErrorLog(o.Logger),
		ConnContext: withFraming,
		ConnState:   func(c net.Conn, state http.ConnState) { g.count(state); s.limited.stateChanged(c, state) },
		BaseContext: func(net.Listener) context.Context { return s.base },
	}
	if g.tls {
		g.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate}
	}
	return g
}

// begin serves in the background. If that fails while the generation is in force,
// failed gets the error.
func (g *generation) begin(failed chan<- error) {
	go func() {
		err := g.serve()
		if g.retired.Load() {
			return
		}
		select {
		case failed <- err:
		default: // one error is enough
		}
	}()
}

func (g *generation) serve() error {
	if g.tls {
		return g.http.ServeTLS(g.feed, "", "")
	}
	return g.http.Serve(g.feed)
}

// retire makes the generation take no more connections.
func (g *generation) retire() {
	g.retired.Store(true)
	g.feed.Close()
}

func (g *generation) count(state http.ConnState) {
	switch state {
	case http.StateNew:
		g.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		g.open.Add(-1)
	}
}

// closeAfterResponse makes responses close their connection while the server drains,
// for which net/http sends GOAWAY in HTTP/2, or if the generation is retired.
func (s *Server) closeAfterResponse(g *generation, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() || g.retired.Load() && r.ProtoMajor < 2 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// A feed is the listener of one generation. Its connections come from the listener
// that all generations share.
type feed struct {
	addr   net.Addr
	next   chan accepted
	closed chan struct{}
	close  func()
}

// accepted is the result of one call of Accept.
type accepted struct {
	conn net.Conn
	err  error
}

func newFeed(addr net.Addr) *feed {
	f := &feed{addr: addr, next: make(chan accepted), closed: make(chan struct{})}
	f.close = sync.OnceFunc(func() { close(f.closed) })
	return f
}

func (f *feed) Accept() (net.Conn, error) {
	select {
	case a := <-f.next:
		return a.conn, a.err
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

func (f *feed) Close() error {
	f.close()
	return nil
}

func (f *feed) Addr() net.Addr { return f.addr }

// acceptAll gives what the listener accepts to the generation in force, until the
// server shuts down. Errors go there too, because net/http knows which are temporary.
func (s *Server) acceptAll() {
	for {
		var a accepted
		if a.conn, a.err = s.limited.Accept(); !s.pass(a) {
			if a.conn != nil {
				a.conn.Close()
			}
			return
		}
	}
}

// pass reports whether a generation took the connection.
func (s *Server) pass(a accepted) bool {
	for {
		g := s.current.Load()
		if c, ok := a.conn.(*limitedConn); ok {
			c.plain = !g.tls
		}
		select {
		case g.feed.next <- a:
			return true
		case <-g.feed.closed: // g retired, or the server shuts down
			if s.current.Load() == g {
				return false
			}
		}
	}
}

// shutdown closes the listener and waits until all generations have answered their
// requests. When ctx ends it cuts them off.
func (s *Server) shutdown(ctx context.Context) error {
	s.limited.Close()
	s.mu.Lock()
	s.stopping = true // no further generation begins
	generations := append(s.retired, s.current.Load())
	s.mu.Unlock()
	errs := make([]error, len(generations))
	var wg sync.WaitGroup
	for i, g := range generations {
		wg.Go(func() {
			if errs[i] = g.http.Shutdown(ctx); errs[i] != nil {
				g.http.Close()
			}
		})
	}
	wg.Wait()
	return cmp.Or(errs...)
}
