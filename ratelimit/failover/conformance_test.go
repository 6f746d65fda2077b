package failover_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func TestConformance(t *testing.T) {
	engine := func(t *testing.T, start time.Time) (*memory.Limiter, *enginetest.Clock) {
		clock := enginetest.NewClock(start)
		l, err := memory.New(memory.Options{Now: clock.Now})
		must(t, err)
		return l, clock
	}
	limiter := func(t *testing.T, primary ratelimit.Limiter, opts failover.Options) *failover.Limiter {
		l, err := failover.New(primary, opts)
		must(t, err)
		t.Cleanup(func() { l.Close() })
		return l
	}
	t.Run("the primary decides", func(t *testing.T) {
		enginetest.Run(t, func(t *testing.T, start time.Time) enginetest.Engine {
			primary, clock := engine(t, start)
			// A machine that is busy is no fault.
			l := limiter(t, primary, failover.Options{Local: newEngine(t), Budget: time.Minute})
			return enginetest.Engine{Limiter: l, Set: clock.Set}
		}, enginetest.Gaps{})
	})
	t.Run("the local engine decides", func(t *testing.T) {
		enginetest.Run(t, func(t *testing.T, start time.Time) enginetest.Engine {
			local, clock := engine(t, start)
			primary := newShared(t)
			primary.set(down)
			l := limiter(t, primary, failover.Options{Local: local, ConsecutiveFailures: 1, Backoff: time.Hour})
			_, err := l.Take(t.Context(), "another", daily, 1)
			must(t, err)
			if !l.Open() {
				t.Fatal("the circuit is not open")
			}
			return enginetest.Engine{Limiter: here{l}, Set: clock.Set}
		}, enginetest.Gaps{})
	})
}

// A here is a Limiter during an outage. Its commands succeed if they take effect in
// this process.
type here struct{ *failover.Limiter }

func inThisProcess(err error) error {
	if errors.Is(err, failover.ErrLocalOnly) {
		return nil
	}
	return err
}

func (h here) Reset(ctx context.Context, subject string) error {
	return inThisProcess(h.Limiter.Reset(ctx, subject))
}

func (h here) Ban(ctx context.Context, subject string, length time.Duration, reason string) error {
	return inThisProcess(h.Limiter.Ban(ctx, subject, length, reason))
}

func (h here) Unban(ctx context.Context, subject string) (bool, error) {
	unbanned, err := h.Limiter.Unban(ctx, subject)
	return unbanned, inThisProcess(err)
}
