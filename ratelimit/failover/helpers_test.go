package failover_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/internal/partial"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var must = testcheck.NoError

var (
	ctx     = context.Background()
	errDown = errors.New("connection refused")
)

// A shared is the primary: an exact engine, and before each call of it a fault.
type shared struct {
	engine *memory.Limiter
	fault  atomic.Pointer[func(context.Context) error]
	calls  atomic.Int64

	mu    sync.Mutex
	holds map[string]*held // by subject and id
	lost  func() bool      // the answer to a held take; nil: none is
}

// A held is a charge that is held.
type held struct {
	subject string
	d       ratelimit.Decision
	ended   bool // by itself: the units were given back
}

func newShared(t testing.TB) *shared {
	return &shared{engine: newEngine(t), holds: map[string]*held{}}
}

func newEngine(t testing.TB) *memory.Limiter {
	t.Helper()
	l, err := memory.New(memory.Options{})
	must(t, err)
	return l
}

// set sets the fault; nil: there is none.
func (s *shared) set(fault func(context.Context) error) { s.fault.Store(&fault) }

func down(context.Context) error { return errDown }

// hangs is the fault of a primary that does not answer.
func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// slow is the fault of a primary that takes a time to answer.
func slow(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *shared) pass(ctx context.Context) error {
	s.calls.Add(1)
	if f := s.fault.Load(); f != nil && *f != nil {
		return (*f)(ctx)
	}
	return nil
}

func (s *shared) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (d ratelimit.Decision, err error) {
	if err := s.pass(ctx); err != nil {
		return d, err
	}
	return s.engine.Take(ctx, subject, plan, cost)
}

// TakeAll makes each charge with a call of Take.
func (s *shared) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	return engine.TakeInOrder(ctx, s, charges, decisions)
}

func (s *shared) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	if err := s.pass(ctx); err != nil {
		return err
	}
	return s.adjust(ctx, subject, d, units, id)
}

// adjust makes an adjustment, of a hold as [engine.Holder] says.
func (s *shared) adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holds[subject+" "+id]
	delete(s.holds, subject+" "+id)
	if h != nil && h.ended {
		anew := *d
		anew.Cost, d = 0, &anew
	}
	return s.engine.Adjust(ctx, subject, d, units, id)
}

// Hold returns a view that makes charges in order.
func (s *shared) Hold(id string, _ time.Duration) ratelimit.Limiter { return holder{s, id} }

type holder struct {
	s  *shared
	id string
}

func (h holder) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	d, err := h.s.Take(ctx, subject, plan, cost)
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if err == nil && d.Allowed() {
		h.s.holds[subject+" "+h.id] = &held{subject: subject, d: d}
	}
	if err == nil && h.s.lost != nil && h.s.lost() {
		return ratelimit.Decision{}, errLost
	}
	return d, err
}

func (h holder) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	return engine.TakeInOrder(ctx, h, charges, decisions)
}

// Adjust gives back what TakeInOrder has charged.
func (h holder) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, _ string) error {
	return h.s.adjust(ctx, subject, d, units, h.id)
}

func (h holder) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	return h.s.Peek(ctx, subject, plan)
}

// endHolds ends the holds by themselves, as if their processes had died.
func (s *shared) endHolds(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.holds {
		if !h.ended {
			must(t, s.engine.Adjust(ctx, h.subject, &h.d, 0, ""))
			h.ended = true
		}
	}
}

func (s *shared) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (d ratelimit.Decision, err error) {
	if err := s.pass(ctx); err != nil {
		return d, err
	}
	return s.engine.Peek(ctx, subject, plan)
}

func (s *shared) Reset(ctx context.Context, subject string) error {
	if err := s.pass(ctx); err != nil {
		return err
	}
	return s.engine.Reset(ctx, subject)
}

func (s *shared) Ban(ctx context.Context, subject string, length time.Duration, reason string) error {
	if err := s.pass(ctx); err != nil {
		return err
	}
	return s.engine.Ban(ctx, subject, length, reason)
}

func (s *shared) Unban(ctx context.Context, subject string) (bool, error) {
	if err := s.pass(ctx); err != nil {
		return false, err
	}
	return s.engine.Unban(ctx, subject)
}

func (s *shared) Bans(ctx context.Context) ([]engine.Ban, error) {
	if err := s.pass(ctx); err != nil {
		return nil, err
	}
	return s.engine.Bans(ctx)
}

// A rig is a Limiter with its two engines.
type rig struct {
	*testing.T
	*failover.Limiter
	shared *shared
	local  *memory.Limiter
}

// A fallback says whether a Limiter has a local engine.
type fallback bool

const withLocal, alone fallback = true, false

func (f fallback) String() string {
	if f {
		return "with a local engine"
	}
	return "alone"
}

// run runs a test with a Limiter in a bubble of its own time, which begins at
// half past a minute, an hour and a day: 2000-01-01T12:30:30Z.
func run(t *testing.T, mode fallback, opts failover.Options, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12*time.Hour + 30*time.Minute + 30*time.Second)
		r := &rig{T: t, shared: newShared(t), local: newEngine(t)}
		if mode == withLocal {
			opts.Local = r.local
		}
		r.use(r.shared, opts)
		test(r)
	})
}

// use gives the rig another Limiter.
func (r *rig) use(primary ratelimit.Limiter, opts failover.Options) {
	r.Helper()
	l, err := failover.New(primary, opts)
	must(r, err)
	r.Cleanup(func() { l.Close() })
	r.Limiter = l
}

// oneProcessor makes a test run on one processor. The race detector of Go 1.26 fails
// when several processors run the timers of one bubble, as those of many contexts.
func oneProcessor(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

var daily = ratelimit.MustPlan("daily", ratelimit.Penalty{}, ratelimit.PerDay(1000))

// try takes one unit, whatever the answer.
func (r *rig) try(subject string, plan *ratelimit.Plan) { _, _ = r.Take(ctx, subject, plan, 1) }

// take takes one unit, or fails.
func (r *rig) take(subject string, plan *ratelimit.Plan) ratelimit.Decision {
	r.Helper()
	return r.takeN(subject, plan, 1)
}

func (r *rig) takeN(subject string, plan *ratelimit.Plan, cost int64) ratelimit.Decision {
	r.Helper()
	d, err := r.Take(ctx, subject, plan, cost)
	if err != nil {
		r.Fatalf("Take(%q, %v, %d): %v", subject, plan, cost, err)
	}
	return d
}

// adjust makes the charge d cost some units, or fails.
func (r *rig) adjust(subject string, d *ratelimit.Decision, units int64) {
	r.Helper()
	if err := r.Adjust(ctx, subject, d, units, ""); err != nil {
		r.Fatalf("Adjust(%q, from %d to %d): %v", subject, d.Cost, units, err)
	}
	d.Cost = units
}

// lose takes the primary away and opens the circuit, with requests of a subject that
// no test looks at.
func (r *rig) lose() {
	r.Helper()
	r.shared.set(down)
	for i := 0; !r.Open(); i++ {
		if i == 64 {
			r.Fatal("64 failures did not open the circuit")
		}
		r.try("another", daily)
	}
}

// losePart takes away a part of the primary, which leaves the circuit closed.
func (r *rig) losePart() {
	r.shared.set(func(context.Context) error { return fmt.Errorf("%w: %w", ratelimit.ErrUnavailable, partial.ErrOutage) })
}

// regain brings the primary back, and waits until the circuit is closed and
// everything merged.
func (r *rig) regain() {
	r.Helper()
	r.shared.set(nil)
	time.Sleep(6 * time.Second)
	synctest.Wait()
	if s := r.Stats(); r.Open() || s.Pending != 0 {
		r.Fatalf("six seconds after the primary came back the circuit is open: %v, and %d subjects are in the journal", r.Open(), s.Pending)
	}
}

// used returns what the engine has counted for each quota of the plan.
func used(t testing.TB, limiter *memory.Limiter, subject string, plan *ratelimit.Plan) string {
	t.Helper()
	d, err := limiter.Peek(ctx, subject, plan)
	must(t, err)
	text := ""
	for i := range engine.Of(plan).Len() {
		text += fmt.Sprintf("%d/%v ", d.Used(i), engine.Of(plan).Quota(i).Window)
	}
	return text[:len(text)-1]
}

func (r *rig) wantUsed(promise string, engine *memory.Limiter, subject string, plan *ratelimit.Plan, want string) {
	r.Helper()
	if got := used(r, engine, subject, plan); got != want {
		r.Errorf("%s: used %s, want %s", promise, got, want)
	}
}

func (r *rig) wantOpen(promise string, want bool) {
	r.Helper()
	if got := r.Open(); got != want {
		r.Fatalf("%s: the circuit is open: %v, want %v", promise, got, want)
	}
}
