package histories_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/internal/integration/histories"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A flapping primary fails all calls for a while, and then none, by turns.
type flapping struct {
	*memory.Limiter
	calls atomic.Int64
}

const turn = 40 // calls

func (f *flapping) fails() error {
	if f.calls.Add(1)/turn%2 == 1 {
		return ratelimit.ErrUnavailable
	}
	return nil
}

func (f *flapping) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (d ratelimit.Decision, err error) {
	if err := f.fails(); err != nil {
		return d, err
	}
	return f.Limiter.Take(ctx, subject, plan, cost)
}

func (f *flapping) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (d ratelimit.Decision, err error) {
	if err := f.fails(); err != nil {
		return d, err
	}
	return f.Limiter.Peek(ctx, subject, plan)
}

func (f *flapping) Ban(ctx context.Context, subject string, length time.Duration) error {
	if err := f.fails(); err != nil {
		return err
	}
	return f.Limiter.Ban(ctx, subject, length)
}

func (f *flapping) Unban(ctx context.Context, subject string) (bool, error) {
	if err := f.fails(); err != nil {
		return false, err
	}
	return f.Limiter.Unban(ctx, subject)
}

// An apart engine lets no Peek come while a Ban or an Unban is under way: those
// change two engines, and a circuit that opens between shows which one is first.
type apart struct {
	*failover.Limiter
	mu sync.RWMutex // locked for writing by Peek
}

func (a *apart) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Limiter.Peek(ctx, subject, plan)
}

func (a *apart) Ban(ctx context.Context, subject string, length time.Duration) error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.Limiter.Ban(ctx, subject, length)
}

func (a *apart) Unban(ctx context.Context, subject string) (bool, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.Limiter.Unban(ctx, subject)
}

// Bans by hand are explained by one order, although the primary comes and goes,
// and holds only some of them at any time.
func TestFailoverBansThroughOutages(t *testing.T) {
	outages := uint64(0)
	for seed := range uint64(12) {
		f := &flapping{Limiter: newEngine(t)}
		l, err := failover.New(f, failover.FailLocal, failover.Options{
			Local: newEngine(t), Row: 1, FirstProbe: time.Millisecond, LastProbe: time.Millisecond,
			Budget: time.Minute, // a machine that is busy is no fault
		})
		if err != nil {
			t.Fatal(err)
		}
		histories.Check(t, &apart{Limiter: l}, histories.Options{Seed: seed, Callers: 4, Calls: 250, Errors: true, BansOnly: true, Pace: 50 * time.Microsecond})
		outages += l.Stats().Opened
		_ = l.Close() // with what could not be merged
	}
	t.Logf("%d outages", outages)
	if outages == 0 {
		t.Error("the primary was never gone: the test has tested nothing")
	}
}

func newEngine(t testing.TB) *memory.Limiter {
	t.Helper()
	l, err := memory.New(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
