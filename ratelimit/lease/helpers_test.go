package lease

import (
	"cmp"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

var (
	must  = testcheck.NoError
	ctx   = context.Background()
	start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	many  = ratelimit.MustPlan("many", ratelimit.DefaultPenalty(), ratelimit.PerMinute(10_000), ratelimit.PerDay(100_000))
	more  = ratelimit.MustPlan("more", ratelimit.Penalty{}, ratelimit.PerMinute(20_000))
	lax   = ratelimit.MustPlan("lax", ratelimit.Penalty{}, ratelimit.PerMinute(10), ratelimit.PerDay(1000))
	few   = ratelimit.MustPlan("few", ratelimit.DefaultPenalty(), ratelimit.PerMinute(10), ratelimit.PerDay(1000))
)

// A counted engine counts the questions of requests.
type counted struct {
	*memory.Limiter
	calls atomic.Int64
	hook  func(call) error // called before and after each question; an error is the answer
}

// A call is a question to a counted engine.
type call struct {
	ctx      context.Context
	cost     int64
	terms    engine.Terms
	answered bool
}

func answers(call) error { return nil }
func fails(call) error   { return ratelimit.ErrUnavailable }

func newCounted(now func() time.Time) *counted {
	l, err := memory.New(memory.Options{Now: now})
	if err != nil {
		panic(err)
	}
	return &counted{Limiter: l, hook: answers}
}

// do answers a question with f.
func (c *counted) do(asked call, f func() (ratelimit.Decision, error)) (d ratelimit.Decision, err error) {
	c.calls.Add(1)
	if err = c.hook(asked); err == nil {
		d, err = f()
		asked.answered = true
		err = cmp.Or(err, c.hook(asked))
	}
	return d, err
}

// once calls f while the next question is asked.
func (c *counted) once(f func(context.Context)) {
	c.hook = func(asked call) error {
		c.hook = answers
		f(asked.ctx)
		return nil
	}
}

// tarries has the next question reach the engine late.
func (r *rig) tarries() {
	r.fake.once(func(context.Context) { r.clock.Advance(40 * time.Millisecond) })
}

// late calls f before the answer to the next question comes.
func (c *counted) late(f func()) {
	c.hook = func(asked call) error {
		if asked.answered {
			c.hook = answers
			f()
		}
		return nil
	}
}

func (c *counted) Take(ctx context.Context, subject string, p *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	return c.do(call{ctx: ctx, cost: cost}, func() (ratelimit.Decision, error) { return c.Limiter.Take(ctx, subject, p, cost) })
}

func (c *counted) Lease(ctx context.Context, subject string, p *ratelimit.Plan, cost int64, terms engine.Terms) (ratelimit.Decision, error) {
	return c.do(call{ctx, cost, terms, false}, func() (ratelimit.Decision, error) { return c.Limiter.Lease(ctx, subject, p, cost, terms) })
}

// A rig is one process in front of an engine, with a clock that tests move. What runs in the
// background is done immediately.
type rig struct {
	*testing.T
	*Limiter
	clock *ratelimittest.Clock
	fake  *counted
}

func newRig(t *testing.T) *rig {
	r := &rig{T: t, clock: ratelimittest.NewClock(start)}
	r.fake = newCounted(r.clock.Now)
	must(t, r.fake.Reset(ctx, "ann")) // so that her usage has a generation other than 0
	r.Limiter = r.process()
	return r
}

// process returns another process in front of the engine.
func (r *rig) process() *Limiter {
	return inFront(r.fake, func() reading { now := time.Duration(r.clock.Now().UnixNano()); return reading{now, now} })
}

// inFront returns a process that does immediately what runs in the background.
func inFront(e shared, read func() reading) *Limiter {
	l := newLimiter(e, read)
	l.background = func(f func()) { f() }
	return l
}

func (r *rig) take(p *ratelimit.Plan, cost int64) ratelimit.Decision {
	r.Helper()
	d, err := r.Take(ctx, "ann", p, cost)
	must(r, err)
	return d
}

// flood makes requests of one unit, a millisecond apart, and returns how many were admitted
// and how often the engine was asked.
func (r *rig) flood(p *ratelimit.Plan, requests int) (admitted, asked int) {
	r.Helper()
	before := r.fake.calls.Load()
	for range requests {
		if d := r.take(p, 1); d.Allowed() {
			admitted++
		}
		r.clock.Advance(time.Millisecond)
	}
	return admitted, int(r.fake.calls.Load() - before)
}

// elsewhere makes a request to another process, which has no shares.
func (r *rig) elsewhere(p *ratelimit.Plan, cost int64) {
	r.Helper()
	_, err := r.fake.Take(ctx, "ann", p, cost)
	must(r, err)
}

// used returns what the engine has counted in the first quota.
func (r *rig) used(p *ratelimit.Plan) int64 {
	r.Helper()
	d, err := r.fake.Peek(ctx, "ann", p)
	must(r, err)
	return p.Quotas()[0].Limit - d.States[0].Remaining
}

func (r *rig) held() int64 { return r.Stats().Held }

func (r *rig) find(p *ratelimit.Plan) *entry {
	h, t := r.table("ann")
	return t.find(h, p)
}
