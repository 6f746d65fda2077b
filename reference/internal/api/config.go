package api

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/middleware/telemetry"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// KeyPrefix is the prefix of the keys of the service.
const KeyPrefix = "pet_live_"

// NewKey returns a new key in the format of the service.
func NewKey() (apikey.Secret, error) {
	format, err := apikey.NewFormat(KeyPrefix)
	if err != nil {
		return apikey.Secret{}, err
	}
	return format.Generate(), nil
}

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
	*config.Config // the settings

	Pets    store.Pets
	Keys    store.KeyFinder
	Limiter Limiter

	// Plan returns the plan of a key by the name and the quotas that the key was
	// stored with. While it returns an error, requests with the key are answered
	// with 503.
	Plan func(name string, quotas []string) (*ratelimit.Plan, error)

	// OnDeprecatedUse is called with each request of an owner for a deprecated
	// operation. It must be safe for concurrent use, and return quickly.
	OnDeprecatedUse func(operation, owner string)

	// Telemetry counts requests by the outcome of their authentication, the use of
	// deprecated operations, and panics. Decisions are counted by OnDecision. Nil: none.
	Telemetry *telemetry.Telemetry

	// OnDecision is called with each decision on a request that is charged, after it was
	// made and before the request is served or refused; see [limit.Options].Observe
	// for its arguments. Requests that are not charged are left out. It must be safe for
	// concurrent use, and return quickly.
	OnDecision func(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error)

	// Logger gets one line for each request, and the causes of errors. Nil:
	// slog.Default.
	Logger *slog.Logger

	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

func (c Config) validate() error {
	if c.Config == nil || c.Pets == nil || c.Keys == nil || c.Limiter == nil || c.Plan == nil {
		return errors.New("api: Config.Config, Pets, Keys, Limiter and Plan must be set")
	}
	return nil
}

func (c Config) withDefaults() Config {
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

// headers are the header fields that tell clients what they have left.
func (c Config) headers() limit.HeaderSet {
	if c.DraftHeaders {
		return limit.XRateLimit | limit.DraftRateLimit
	}
	return limit.XRateLimit
}
