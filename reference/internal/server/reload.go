package server

import (
	"errors"
	"net/http"
	"slices"
)

var errNilHandler = errors.New("server: the handler must not be nil")

// Reload replaces the handler and the options while the server serves. Running requests
// end with the old handler. OnReady, PlainHTTP, Logger and the timeouts of reading,
// writing and idling stay as they are. Connections over a lower limit are closed, once
// they are idle, when the next connection arrives.
//
// If Reload returns an error, nothing has changed. Besides a wrong option, that is TLS
// that is turned on or off, and a certificate that cannot be loaded, which it also checks
// if its files are the same.
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
	if (o.CertFile == "") != (before.CertFile == "") {
		return errors.New("server: TLS cannot be turned on or off while the server runs")
	}
	o.OnReady, o.PlainHTTP, o.Logger = before.OnReady, before.PlainHTTP, before.Logger
	o.ReadHeaderTimeout, o.ReadTimeout = before.ReadHeaderTimeout, before.ReadTimeout
	o.WriteTimeout, o.IdleTimeout = before.WriteTimeout, before.IdleTimeout
	o = o.withDefaults()
	if s.limited != nil {
		if err := o.checkExposure(s.limited.Addr()); err != nil {
			return err
		}
	}
	if err := s.take(handler, o); err != nil {
		return err
	}
	if s.limited != nil && (o.MaxConns != before.MaxConns || o.MaxConnsPerNetwork != before.MaxConnsPerNetwork ||
		!slices.Equal(o.TrustedProxies, before.TrustedProxies)) {
		s.limited.setLimits(o.limits())
	}
	return nil
}
