package histories

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var must = testcheck.NoError

func TestModel(t *testing.T) {
	for seed := range uint64(10) {
		check(t, enginetest.NewModel(time.Now), options{seed: seed})
	}
}

func TestMemory(t *testing.T) {
	for seed := range uint64(20) {
		// After a reset of another subject in its segment, less would be given back.
		check(t, newEngine(t), options{seed: seed, subjects: 1})
	}
}

// A check that finds nothing wrong with a wrong engine is worth nothing.
func TestFindsWhatIsWrong(t *testing.T) {
	for name, wrong := range map[string]limiter{
		"a peek that lags behind":  &stale{Model: enginetest.NewModel(time.Now)},
		"a charge that is lost":    &miscounting{enginetest.NewModel(time.Now), 0},
		"a charge that is doubled": &miscounting{enginetest.NewModel(time.Now), 2},
		"a return after a reset":   &revived{Model: enginetest.NewModel(time.Now)},
	} {
		probe := &recorder{TB: t}
		check(probe, wrong, options{callers: 4, calls: 500})
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
	enginetest.Model
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

// A miscounting engine makes a charge now and then another number of times than once.
type miscounting struct {
	enginetest.Model
	times int
}

func (m *miscounting) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (d ratelimit.Decision, err error) {
	if rand.IntN(10) > 0 {
		return m.Model.Take(ctx, subject, plan, cost)
	}
	d, err = m.Peek(ctx, subject, plan)
	for range m.times {
		d, err = m.Model.Take(ctx, subject, plan, cost)
	}
	return d, err
}

type revived struct{ enginetest.Model }

func (r *revived) Lease(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64, terms engine.Terms) (ratelimit.Decision, error) {
	if terms.Back != nil {
		_ = r.Adjust(ctx, subject, terms.Back, 0, "")
		terms.Back = nil
	}
	return r.Model.Lease(ctx, subject, plan, cost, terms)
}

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

func (f *flapping) Ban(ctx context.Context, subject string, length time.Duration, reason string) error {
	if err := f.fails(); err != nil {
		return err
	}
	return f.Limiter.Ban(ctx, subject, length, reason)
}

func (f *flapping) Unban(ctx context.Context, subject string) (bool, error) {
	if err := f.fails(); err != nil {
		return false, err
	}
	return f.Limiter.Unban(ctx, subject)
}

// A command that the primary took holds through outages. One during an outage holds in
// this process only, and no history of one engine explains it. So a steady engine
// commands only while the circuit is closed, which it stays while no other call runs.
type steady struct {
	*failover.Limiter
	mu sync.Mutex
}

var errOutage = errors.New("no commands during an outage")

func (s *steady) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Limiter.Peek(ctx, subject, plan)
}

func (s *steady) Ban(ctx context.Context, subject string, length time.Duration, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Open() {
		return errOutage
	}
	return s.Limiter.Ban(ctx, subject, length, reason)
}

func (s *steady) Unban(ctx context.Context, subject string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Open() {
		return false, errOutage
	}
	return s.Limiter.Unban(ctx, subject)
}

// Bans by hand are explained by one order, although the primary comes and goes, and
// two engines decide in turn.
func TestFailoverBansThroughOutages(t *testing.T) {
	outages := uint64(0)
	for seed := range uint64(12) {
		f := &flapping{Limiter: newEngine(t)}
		l, err := failover.New(f, failover.Options{
			Local: newEngine(t), ConsecutiveFailures: 1, Backoff: time.Millisecond,
			Budget: time.Minute, // a machine that is busy is no fault
		})
		must(t, err)
		check(t, &steady{Limiter: l}, options{seed: seed, callers: 4, calls: 250, errors: true, bansOnly: true, pace: 50 * time.Microsecond})
		outages += l.Stats().Opened
		_ = l.Close() // with what could not be merged
	}
	t.Logf("%d outages", outages)
	if outages == 0 {
		t.Error("there was no outage: the test has tested nothing")
	}
}

func newEngine(t testing.TB) *memory.Limiter {
	t.Helper()
	l, err := memory.New(memory.Options{})
	must(t, err)
	return l
}
