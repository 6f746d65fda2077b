package enginetest

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// testUnmetered tests the plans that have no quotas.
func testUnmetered(e *engineTest) {
	ctx, p := context.Background(), plan(ratelimit.PerDay(100))
	e.take(p)
	for _, c := range []struct {
		plan    *ratelimit.Plan
		outcome ratelimit.Outcome
	}{
		{ratelimit.UnlimitedPlan("tester"), ratelimit.Allowed},
		{ratelimit.SuspendedPlan("debtor"), ratelimit.Suspended},
	} {
		decided := func(call string, cost int64, d ratelimit.Decision, err error) {
			e.Helper()
			want := ratelimit.Decision{Outcome: c.outcome, Plan: c.plan, Cost: cost, StrikesLeft: -1}
			if err != nil || d != want {
				e.Errorf("%s under %v: got %+v and error %v, want %+v", call, c.plan, d, err, want)
			}
		}
		nothing := func(call string, err error) {
			e.Helper()
			if err != nil {
				e.Errorf("%s under %v: got error %v, want that nothing happens", call, c.plan, err)
			}
		}
		if l, ok := e.engine.Limiter.(ratelimit.Banner); ok {
			nothing("Ban of a subject", l.Ban(ctx, "banned", time.Hour))
			d, err := e.engine.Take(ctx, "banned", c.plan, 1)
			decided("Take for a banned subject", 1, d, err)
		}
		for _, cost := range []int64{1, 1000, math.MaxInt64} {
			d, err := e.engine.Take(ctx, "a", c.plan, cost)
			decided("Take", cost, d, err)
			if l, ok := e.engine.Limiter.(ratelimit.Adjuster); ok {
				nothing("Adjust", l.Adjust(ctx, "a", &d, 0, ""))
				nothing("Adjust", l.Adjust(ctx, "a", &d, 7, ""))
			}
		}
		if l, ok := e.engine.Limiter.(ratelimit.Peeker); ok {
			d, err := l.Peek(ctx, "a", c.plan)
			decided("Peek", 1, d, err)
		}
		for name, call := range map[string]struct {
			subject string
			cost    int64
		}{"no subject": {"", 1}, "a cost of nothing": {"a", 0}} {
			if _, err := e.engine.Take(ctx, call.subject, c.plan, call.cost); !errors.Is(err, ratelimit.ErrInvalid) {
				e.Errorf("%s under %v: got error %v, want one that wraps %q", name, c.plan, err, ratelimit.ErrInvalid)
			}
		}
	}
	e.want("after requests under plans without quotas", e.take(p), allowed, 98)
}
