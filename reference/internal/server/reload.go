package server

import (
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"time"
)

var errNilHandler = errors.New("server: the handler must not be nil")

// Reload replaces the handler and the options, except OnReady, PlainHTTP and Logger,
// which stay as they are. Running requests end with the old handler. If Reload returns
// an error, nothing has changed; besides a wrong option, that is a certificate that
// cannot be loaded, which it also checks if its files are the same.
//
// If a timeout changes, or TLS is turned on or off, each open connection keeps the old
// one. It closes after its next response, or in HTTP/2 when it has been idle for the
// old timeout. A lower limit on connections closes idle
// ones when the next connection arrives.
func (s *Server) Reload(handler http.Handler, o Options) error {
	if handler == nil {
		return errNilHandler
	}
	if err := o.validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.options
	o.OnReady, o.PlainHTTP, o.Logger = before.OnReady, before.PlainHTTP, before.Logger
	o = o.withDefaults()
	serving := s.limited != nil && !s.stopping
	if serving {
		if err := o.checkExposure(s.limited.Addr()); err != nil {
			return err
		}
	}
	if err := s.take(handler, o); err != nil {
		return err
	}
	if !serving {
		return nil // Serve begins with the new options, or is about to end
	}
	if o.MaxConns != before.MaxConns || o.MaxConnsPerNetwork != before.MaxConnsPerNetwork || !slices.Equal(o.TrustedProxies, before.TrustedProxies) {
		s.limited.setLimits(o.limits())
	}
	if !o.sameGeneration(before) {
		s.nextGeneration()
	}
	return nil
}

// sameGeneration reports whether one generation can serve with both options.
func (o Options) sameGeneration(other Options) bool {
	return o.ReadHeaderTimeout == other.ReadHeaderTimeout && o.ReadTimeout == other.ReadTimeout &&
		o.WriteTimeout == other.WriteTimeout && o.IdleTimeout == other.IdleTimeout &&
		(o.CertFile == "") == (other.CertFile == "")
}

// nextGeneration replaces the generation in force. The caller holds s.mu.
func (s *Server) nextGeneration() {
	old, g := s.current.Load(), s.newGeneration()
	g.begin(s.failed)
	s.current.Store(g)
	old.retire()
	s.retired = slices.DeleteFunc(append(s.retired, old), func(g *generation) bool { return g != old && g.open.Load() == 0 })
}

// certificate is for [tls.Config.GetCertificate].
func (s *Server) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c := s.cert.Load()
	if c == nil {
		return nil, errors.New("TLS has just been turned off")
	}
	return c.get(hello)
}

// CertificateExpires returns the time at which the certificate in use expires, or the
// zero time without TLS. Like a handshake, it notices that the files have changed.
func (s *Server) CertificateExpires() time.Time {
	c := s.cert.Load()
	if c == nil {
		return time.Time{}
	}
	pair, err := c.get(nil)
	if err != nil || pair.Leaf == nil {
		return time.Time{}
	}
	return pair.Leaf.NotAfter
}
