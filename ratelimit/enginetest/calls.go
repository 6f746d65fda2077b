package enginetest

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

func testWrongCalls(e *engineTest) {
	p := plan(ratelimit.PerDay(10))
	e.take(p)
	calls := func() {
		e.Helper()
		for _, call := range []struct {
			name    string
			subject string
			plan    *ratelimit.Plan
			cost    int64
			want    error
		}{
			{"no plan", "a", nil, 1, ratelimit.ErrInvalid},
			{"a plan without quotas", "a", new(ratelimit.Plan), 1, ratelimit.ErrInvalid},
			{"no subject", "", p, 1, ratelimit.ErrInvalid},
			{"a cost of nothing", "a", p, 0, ratelimit.ErrInvalid},
			{"a negative cost", "a", p, -1, ratelimit.ErrInvalid},
			{"the most negative cost", "a", p, math.MinInt64, ratelimit.ErrInvalid},
			{"a cost over the limit", "a", p, 11, ratelimit.ErrCostExceedsLimit},
			{"an enormous cost", "a", p, 1 << 62, ratelimit.ErrCostExceedsLimit},
			{"the largest cost", "a", p, math.MaxInt64, ratelimit.ErrCostExceedsLimit},
		} {
			d, err := e.engine.Take(context.Background(), call.subject, call.plan, call.cost)
			if !errors.Is(err, call.want) || !errors.Is(err, ratelimit.ErrInvalid) {
				e.Errorf("%s: got %v and error %v, want one that wraps %q", call.name, d.Outcome, err, call.want)
			}
		}
	}
	calls()
	e.want("wrong calls charge nothing", e.take(p), allowed, 8)
	if !e.gaps.UsagePerPlan && !e.gaps.UnitCostOnly {
		e.takeN("a", plan(ratelimit.PerDay(100)), 50)
		calls() // with more used than the smaller plan allows
	}
}

func testNoSubject(e *engineTest) {
	ctx, p := context.Background(), plan(ratelimit.PerDay(10))
	d := e.take(p)
	refused := func(name string, err error) {
		e.Helper()
		if !errors.Is(err, ratelimit.ErrInvalid) {
			e.Errorf("%s without a subject: got error %v, want one that wraps %q", name, err, ratelimit.ErrInvalid)
		}
	}
	if l, ok := e.engine.Limiter.(ratelimit.Peeker); ok {
		_, err := l.Peek(ctx, "", p)
		refused("Peek", err)
	}
	if l, ok := e.engine.Limiter.(ratelimit.Resetter); ok {
		refused("Reset", l.Reset(ctx, ""))
	}
	if l, ok := e.engine.Limiter.(ratelimit.Adjuster); ok {
		refused("Adjust", l.Adjust(ctx, "", &d, 0, ""))
	}
	if l, ok := e.engine.Limiter.(ratelimit.Banner); ok {
		refused("Ban", l.Ban(ctx, "", time.Second))
		_, err := l.Unban(ctx, "")
		refused("Unban", err)
	}
}
