package ratelimittest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// An Engine is what a test is run on.
type Engine struct {
	ratelimit.Limiter

	// Set moves the engine's clock, forwards or backwards. Nil means that the
	// engine's clock cannot be moved; tests that need it are then skipped, and
	// one of the others counts in the longest window there is.
	Set func(t time.Time)

	// Restart returns an engine that continues from the state which this one
	// saves now. Nil means that the engine cannot be restarted.
	Restart func() ratelimit.Limiter
}

// New makes an engine without subjects for one test, with its clock at start if
// it can be set.
type New func(t *testing.T, start time.Time) Engine

// Gaps are what an engine cannot do, as its documentation says.
type Gaps struct {
	OneQuota      bool // plans with more than one quota are refused
	Rolling       bool // windows are not aligned to the calendar
	DeniedCharged bool // a denied request is charged
	UnitCost      bool // costs other than one are refused
	PlanBound     bool // usage does not outlive a change of plan
	NoPenalty     bool // requests after a denial are never punished
}

// A Clock is a time that tests move. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at start.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set sets the time.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// Start is where the clock stands when a test begins: within a second, a
// minute and a day.
var start = time.Date(2026, time.March, 1, 12, 0, 30, 250_000_000, time.UTC)

// Run runs the suite.
func Run(t *testing.T, new New, gaps Gaps) {
	for _, test := range []struct {
		name  string
		clock bool // needs a clock that can be set
		skip  bool
		run   func(*bench)
	}{
		{"counts down", false, false, testCountsDown},
		{"admits exactly the limit", false, false, testExactLimit},
		{"keeps subjects apart", false, false, testSubjectsApart},
		{"refuses wrong calls", false, false, testWrongCalls},
		{"refuses calls without a subject", false, false, testNoSubject},
		{"admits exactly the limit to concurrent callers", false, false, testConcurrent},
		{"charges every quota or none", false, gaps.OneQuota || gaps.DeniedCharged, testAllOrNone},
		{"charges the cost or nothing", false, gaps.UnitCost || gaps.DeniedCharged, testCost},
		{"shows the quota that binds", true, gaps.OneQuota || gaps.Rolling, testApplicable},
		{"supports four quotas", false, gaps.OneQuota, testFourQuotas},
		{"aligns windows to the calendar", true, gaps.Rolling, testAligned},
		{"admits a client that waited", true, false, testRetryAfter},
		{"keeps usage when the plan changes", false, gaps.PlanBound || gaps.OneQuota, testPlanChange},
		{"grants nothing twice when the clock steps back", true, gaps.Rolling || gaps.DeniedCharged || gaps.OneQuota, testClockBack},
		{"bans a client that does not wait", true, gaps.NoPenalty, testBan},
		{"lengthens no ban when the clock steps back", true, gaps.NoPenalty, testBanClockBack},
		{"keeps a ban over when the clock steps back", true, gaps.NoPenalty, testBanStaysOver},
		{"clears strikes with an admission", true, gaps.NoPenalty, testAdmissionClears},
		{"forgets strikes with time", true, gaps.NoPenalty, testDecay},
		{"never bans a client that backs off", true, gaps.NoPenalty, testBackoff},
		{"spares what was in flight", true, gaps.NoPenalty, testGrace},
		{"grants one grace a window", true, gaps.NoPenalty, testGraceOnce},
		{"lengthens and forgives bans", true, gaps.NoPenalty, testGrowth},
		{"peeks without a trace", false, false, testPeek},
		{"resets", false, false, testReset},
		{"refunds", true, gaps.OneQuota, testRefund},
		{"refunds no window but the decision's own", true, gaps.OneQuota, testRefundOwnWindows},
		{"takes in what was admitted elsewhere", true, gaps.OneQuota, testCharge},
		{"bans and unbans by hand", false, false, testBanByHand},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.skip {
				t.Skip("skipped: the engine declares that it cannot do this")
			}
			b := &bench{T: t, gaps: gaps, engine: new(t, start), now: start}
			if test.clock && b.engine.Set == nil {
				t.Skip("skipped: the engine's clock cannot be set")
			}
			test.run(b)
		})
	}
	if gaps == (Gaps{}) {
		t.Run("agrees with the model", func(t *testing.T) { Histories(t, new, 150, 400) })
	}
}

// A bench is one test with its engine.
type bench struct {
	*testing.T
	gaps   Gaps
	engine Engine
	now    time.Time
}

// advance moves the clock.
func (b *bench) advance(d time.Duration) {
	b.now = b.now.Add(d)
	b.engine.Set(b.now)
}

// take takes one unit for the subject "a".
func (b *bench) take(plan *ratelimit.Plan) ratelimit.Decision { return b.takeN("a", plan, 1) }

func (b *bench) takeN(subject string, plan *ratelimit.Plan, cost int64) ratelimit.Decision {
	b.Helper()
	d, err := b.engine.Take(context.Background(), subject, plan, cost)
	if err != nil {
		b.Fatalf("Take(%q, %v, %d): %v", subject, plan, cost, err)
	}
	b.check(&d)
	return d
}

// check holds a decision against what is true of every decision.
func (b *bench) check(d *ratelimit.Decision) {
	b.Helper()
	at := time.Unix(0, d.Time)
	for i := range d.Plan.Len() {
		s, q := d.States[i], d.Plan.Quota(i)
		if s.Remaining < 0 || s.Remaining > q.Limit {
			b.Errorf("Remaining %d is not from 0 to the limit %d", s.Remaining, q.Limit)
		}
		if s.Reset < at.Unix() {
			b.Errorf("Reset %d lies before the decision at %d", s.Reset, at.Unix())
		}
	}
	if d.Allowed() != (d.RetryAfter == 0) || d.RetryAfter < 0 {
		b.Errorf("RetryAfter is %v for a request that was %v", d.RetryAfter, d.Outcome)
	}
	if !d.Allowed() && d.RetryAfterSeconds() < 1 {
		b.Errorf("Retry-After is %d, want at least 1", d.RetryAfterSeconds())
	}
	if (d.Outcome == ratelimit.Banned) != (d.BanEnds > 0) {
		b.Errorf("BanEnds is %d for a request that was %v", d.BanEnds, d.Outcome)
	}
	if d.Reset() < d.BanEnds {
		b.Errorf("Reset %d lies before the end of the ban at %d", d.Reset(), d.BanEnds)
	}
}

// want fails unless the outcome and what remains of the applicable quota are as
// promised.
func (b *bench) want(promise string, d ratelimit.Decision, outcome ratelimit.Outcome, remaining int64) {
	b.Helper()
	if d.Outcome != outcome || d.Remaining() != remaining {
		b.Fatalf("%s: got %v with %d remaining, want %v with %d", promise, d.Outcome, d.Remaining(), outcome, remaining)
	}
}

func plan(quotas ...ratelimit.Quota) *ratelimit.Plan {
	return ratelimit.MustPlan("test", ratelimit.Penalty{}, quotas...)
}
