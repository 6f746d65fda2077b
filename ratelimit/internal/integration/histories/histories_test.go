package histories_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/internal/integration/histories"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func TestModel(t *testing.T) {
	for seed := range uint64(10) {
		histories.Check(t, enginetest.NewModel(time.Now), histories.Options{Seed: seed})
	}
}

func TestMemory(t *testing.T) {
	for seed := range uint64(20) {
		l, err := memory.New(memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		histories.Check(t, l, histories.Options{Seed: seed})
	}
}

// A failover.Limiter is one engine while the primary answers, and another one during
// an outage.
func TestFailover(t *testing.T) {
	for seed := range uint64(10) {
		for _, gone := range []bool{false, true} {
			l, err := failover.New(&primary{newEngine(t), gone}, failover.Options{
				Local: newEngine(t), ConsecutiveFailures: 1, MinBackoff: time.Hour,
				Budget: time.Minute, // a machine that is busy is no fault
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Take(t.Context(), "opens the circuit in an outage", before, 1); err != nil {
				t.Fatal(err)
			}
			histories.Check(t, inThisProcess{l}, histories.Options{Seed: seed})
			if open := l.Circuit() != failover.CircuitClosed; open != gone {
				t.Errorf("the circuit is open: %v, want %v", open, gone)
			}
			_ = l.Close() // with what could not be merged
		}
	}
}

var before = ratelimit.MustPlan("before", ratelimit.Penalty{}, ratelimit.PerDay(1))

// A primary answers, or it is gone.
type primary struct {
	*memory.Limiter
	gone bool
}

func (p *primary) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if p.gone {
		return ratelimit.Decision{}, ratelimit.ErrUnavailable
	}
	return p.Limiter.Take(ctx, subject, plan, cost)
}

// A check that finds nothing wrong with a wrong engine is worth nothing.
func TestFindsWhatIsWrong(t *testing.T) {
	for name, engine := range map[string]histories.Engine{
		"a peek that lags behind":  &stale{Model: enginetest.NewModel(time.Now)},
		"a charge that is lost":    &lossy{Model: enginetest.NewModel(time.Now)},
		"a charge that is doubled": &double{Model: enginetest.NewModel(time.Now)},
	} {
		probe := &recorder{TB: t}
		histories.Check(probe, engine, histories.Options{Callers: 4, Calls: 100})
		if !probe.failed {
			t.Errorf("%s was not found", name)
		}
	}
}

// A recorder is a test that may fail.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }

type stale struct {
	*enginetest.Model
	mu   sync.Mutex
	last ratelimit.Decision
}

func (s *stale) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.Model.Peek(ctx, subject, plan)
	if s.last.Plan == nil || rand.IntN(2) == 0 {
		s.last = d
	}
	return s.last, err
}

type lossy struct{ *enginetest.Model }

func (l *lossy) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if rand.IntN(10) == 0 {
		return l.Model.Peek(ctx, subject, plan)
	}
	return l.Model.Take(ctx, subject, plan, cost)
}

type double struct{ *enginetest.Model }

func (d *double) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if rand.IntN(10) == 0 {
		_, _ = d.Model.Take(ctx, subject, plan, cost)
	}
	return d.Model.Take(ctx, subject, plan, cost)
}
