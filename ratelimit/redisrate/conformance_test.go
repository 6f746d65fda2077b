package redisrate_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/redisrate"
)

// gaps are what the documentation of Limiter says that GCRA cannot do.
var gaps = enginetest.Gaps{OneQuota: true, InOrder: true, RollingWindows: true, UsagePerPlan: true, NoCalendars: true, NoSmooth: true, NoPenalties: true}

func TestConformance(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, start time.Time) enginetest.Engine {
		f := newFixture(t, redisrate.Options{})
		f.set(start)
		return enginetest.Engine{
			Limiter: another{&running{f: f}, f.Limiter, f.Limiter},
			Set:     f.set,
		}
	}, gaps)
}

type resetter interface {
	Reset(ctx context.Context, subject string) error
}

// another has the capabilities of a Limiter, and another way to Take.
type another struct {
	ratelimit.Limiter
	engine.Peeker
	resetter
}

// A running engine is one whose server's clock moves on between two calls, as
// that of any server does. While the clock stands still, the rounding of times
// adds up, and at times refuses the last unit of a limit.
type running struct {
	f  *fixture
	mu sync.Mutex
}

func (r *running) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	r.mu.Lock()
	r.f.advance(time.Microsecond)
	r.mu.Unlock()
	return r.f.Take(ctx, subject, plan, cost)
}
