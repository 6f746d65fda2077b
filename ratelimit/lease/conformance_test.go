package lease

import (
	"context"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// Without other processes, with what runs in the background done at once, and without
// remembered denials, the decisions are those of the engine alone.
func TestConformance(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, start time.Time) enginetest.Engine {
		clock := ratelimittest.NewClock(start)
		l := inFront(enginetest.NewModel(clock.Now).(shared), func() reading { now := clock.Now().UnixNano(); return reading{now, now} })
		t.Cleanup(l.Close)
		return enginetest.Engine{Limiter: forgetful{l}, Set: clock.Set}
	}, enginetest.Gaps{})
}

// A forgetful limiter does not remember denials.
type forgetful struct{ *Limiter }

func (f forgetful) Take(ctx context.Context, subject string, p *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	d, err := f.Limiter.Take(ctx, subject, p, cost)
	if !d.Allowed() {
		f.forget(subject)
	}
	return d, err
}
