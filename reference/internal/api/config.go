package api

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/middleware/telemetry"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// KeyPrefix is the prefix of the keys of the service.
const KeyPrefix = "pet_live_"

// A Limiter is an engine that can also decide about several subjects at once, report the
// usage of a subject, and adjust a charge.
type Limiter interface {
	ratelimit.Limiter
	engine.MultiTaker
	engine.Peeker
	engine.Adjuster
}

// Config configures the handler of [New]. The first five fields are required, the
// others may be zero.
type Config struct {
	Pets    store.Pets
	Keys    store.KeyFinder
	Limiter Limiter

	// Plan returns the plan of a key by the name and the quotas that the key was
	// stored with. While it returns an error, requests with the key are answered
	// with 503.
	Plan func(name string, quotas []string) (*ratelimit.Plan, error)

	// Anonymous is the plan of a network, under which requests without a valid key
	// are counted.
	Anonymous *ratelimit.Plan

	// Uncharged is the plan of requests that are not charged: those for /openapi.json and
	// /docs and CORS preflights, by network, and getUsage, by owner. Its usage is separate
	// from all other usage. Nil: 600 requests per minute, without bans.
	Uncharged *ratelimit.Plan

	// Client finds the address of a client. Nil: that of the connection.
	Client *clientip.Source

	// Deny lists the clients that are refused with 403. Their requests are not counted.
	Deny AccessList

	// Allow lists the clients that no limit refuses and bans: their requests are counted
	// and their responses show what is left, as for any other client. A client on both
	// lists is refused.
	Allow AccessList

	// Deprecations are the deprecated operations by operationId, which must be one of
	// [Deprecatable]. OnUse, Errors and Now of their options are ignored.
	Deprecations map[string]deprecation.Options

	// OnDeprecatedUse is called with each request of an owner for a deprecated
	// operation. It must be safe for concurrent use, and return quickly.
	OnDeprecatedUse func(operation, owner string)

	// Telemetry counts requests by the outcome of their authentication, the use of
	// deprecated operations, and panics. Decisions are counted by OnDecision. Nil: none.
	Telemetry *telemetry.Telemetry

	// Headers are the header fields that tell clients what they have left.
	Headers limit.HeaderSet

	// OnDecision is called with each decision on a request that is charged, after it was
	// made and before the request is served or refused; see [limit.Options].Observe
	// for its arguments. A client in Allow is served whatever the decision is. Requests
	// that are not charged are left out. It must be safe for concurrent use, and return
	// quickly.
	OnDecision func(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error)

	// FailOpen serves requests that the limiter cannot decide. By default they get a 503.
	FailOpen bool

	// Origins are the web origins from which pages may call the API, each as
	// browsers send it (RFC 6454 section 6.2): "https://app.example". None: CORS is
	// off.
	Origins []string

	// Timeout is how long the store may take for one request. After that the request
	// is answered with 503. Zero: ten seconds.
	Timeout time.Duration

	// Logger gets one line for each request, and the causes of errors. Nil:
	// slog.Default.
	Logger *slog.Logger

	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

func (c Config) validate() error {
	switch {
	case c.Pets == nil || c.Keys == nil || c.Limiter == nil || c.Plan == nil || c.Anonymous == nil:
		return errors.New("api: Config.Pets, Keys, Limiter, Plan and Anonymous must be set")
	case c.Timeout < 0:
		return fmt.Errorf("api: Config.Timeout must not be negative, got %v", c.Timeout)
	}
	for i, origin := range c.Origins {
		// Package cors would take a star for a pattern, and allow pages of every host that
		// matches.
		if origin == "" || strings.Contains(origin, "*") {
			return fmt.Errorf("api: Config.Origins[%d] must be an origin such as https://app.example, got %q", i, origin)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Uncharged = cmp.Or(c.Uncharged, ratelimit.MustPlan("uncharged", ratelimit.Penalty{}, ratelimit.PerMinute(600)))
	c.Client = cmp.Or(c.Client, clientip.FromRemoteAddr())
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.OnDeprecatedUse == nil {
		c.OnDeprecatedUse = func(string, string) {}
	}
	if c.OnDecision == nil {
		c.OnDecision = func(*http.Request, ratelimit.Caller, ratelimit.Decision, error) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
