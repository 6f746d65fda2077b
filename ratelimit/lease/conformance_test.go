package lease

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// Without other processes, with what runs in the background done immediately, without remembered
// denials, and with shares that no other call meets, the decisions are those of the engine alone.
func TestConformance(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, start time.Time) enginetest.Engine {
		clock := ratelimittest.NewClock(start)
		l := inFront(enginetest.NewModel(clock.Now).(shared), func() reading { now := time.Duration(clock.Now().UnixNano()); return reading{now, now} })
		t.Cleanup(l.Close)
		return enginetest.Engine{Limiter: forgetful{l, new(sync.Map)}, Set: clock.Set}
	}, enginetest.Gaps{Forgets: true}) // when a share is given back
}

// A forgetful limiter does not remember denials, and gives a share back before any call about
// its subject but a request under the same plan.
type forgetful struct {
	*Limiter
	plans *sync.Map // by subject
}

func (f forgetful) Take(ctx context.Context, subject string, p *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if before, _ := f.plans.Swap(subject, p); before != p {
		f.forget(subject)
	}
	d, err := f.Limiter.Take(ctx, subject, p, cost)
	if !d.Allowed() {
		f.forget(subject)
	}
	return d, err
}

func (f forgetful) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	for _, c := range charges {
		f.forget(c.Subject)
	}
	return f.Limiter.TakeAll(ctx, charges, decisions)
}

func (f forgetful) Peek(ctx context.Context, subject string, p *ratelimit.Plan) (ratelimit.Decision, error) {
	f.forget(subject)
	return f.Limiter.Peek(ctx, subject, p)
}

func (f forgetful) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	f.forget(subject)
	return f.Limiter.Adjust(ctx, subject, d, units, id)
}
