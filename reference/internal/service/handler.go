package service

import (
	"net/http"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

// newHandler returns the handler of the API with these settings.
func (s *state) newHandler(c *config.Config) (http.Handler, error) {
	client := clientip.FromRemoteAddr()
	if len(c.TrustedProxies) > 0 {
		var err error
		if client, err = clientip.FromXForwardedFor(c.TrustedProxies); err != nil {
			return nil, err
		}
	}
	headers := limit.XRateLimit
	if c.DraftHeaders {
		headers |= limit.DraftRateLimit
	}
	onFailure := limit.FailClosed
	if c.OnFailure == "open" {
		onFailure = limit.FailOpen
	}
	handler, err := api.New(api.Config{
		Pets:             s.store,
		Keys:             s.store,
		Limiter:          s.limiter,
		OnLimiterFailure: onFailure,
		Plan:             c.Plans.Of,
		Anonymous:        c.Anonymous,
		Uncharged:        c.Uncharged,
		Client:           client,
		Deny:             api.AccessList(c.Deny),
		Allow:            api.AccessList(c.Allow),
		Deprecations:     c.Deprecations,
		OnDeprecatedUse:  s.uses.Count,
		OnDecision:       s.onDecision,
		Telemetry:        s.observer.Telemetry,
		Headers:          headers,
		Origins:          c.CORSOrigins,
		Timeout:          c.Timeouts.Store,
		Logger:           s.logger,
	})
	if err != nil {
		return nil, err
	}
	return s.observer.Handler(handler, client.Addr), nil
}
