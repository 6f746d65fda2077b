package server

import (
	"net/http"
	"strings"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

// newHandler returns the handler of the API with these settings.
func (s *server) newHandler(c *config.Config) (http.Handler, error) {
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	s.observer.Plan(c.Anonymous.Name())
	for _, p := range c.Plans {
		s.observer.Plan(p.Name)
	}
	handler, err := api.New(api.Config{
		Config:          c,
		Pets:            s.store,
		Keys:            s.store,
		Limiter:         s.limiter,
		Plan:            c.Plans.Of,
		OnDeprecatedUse: s.uses.Count,
		OnDecision:      s.onDecision,
		Telemetry:       s.observer.Telemetry,
		Logger:          s.Logger,
	})
	if err != nil {
		return nil, err
	}
	return s.observer.Handler(handler, client.Addr), nil
}

// onDecision is called with each decision on a request that is charged.
func (s *server) onDecision(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
	s.observer.Decision(r, c, d, err)
	s.console.Observe(r, c, d, err)
	if owner, ok := strings.CutPrefix(c.Subject, apikey.OwnerSubject("")); ok && err == nil {
		s.daily.Count(owner, d.Allowed())
	}
}

// shown returns what the admin listener shows and changes, or nil until the server serves.
func (s *server) shown() *admin.Server {
	c := s.settings.Load()
	if c == nil {
		return nil
	}
	return &admin.Server{
		Limiter: s.audited, Console: s.console,
		Store: s.store, Plan: c.Plans.Of, Anonymous: c.Anonymous, Deprecations: c.Deprecations,
	}
}
