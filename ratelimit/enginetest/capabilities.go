package enginetest

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// capability returns the engine as a C, and skips the test if it is none.
func capability[C any](e *engineTest) C {
	c, ok := e.engine.Limiter.(C)
	if !ok {
		e.Skipf("skipped: the engine is not a %v", reflect.TypeFor[C]())
	}
	return c
}

type resetter interface {
	Reset(ctx context.Context, subject string) error
}

func testPeek(e *engineTest) {
	peeker, p := capability[engine.Peeker](e), strict(penalty())
	if e.gaps.OneQuota {
		p = ratelimit.MustPlan("strict", penalty(), ratelimit.PerHour(1))
	}
	peek := func() ratelimit.Decision {
		e.Helper()
		d, err := peeker.Peek(ctx, "a", p)
		if err != nil {
			e.Fatal(err)
		}
		e.check(&d)
		return d
	}
	e.want("before anything", peek(), allowed, 1)
	e.want("a peek charges nothing", peek(), allowed, 1)
	e.take(p)
	for range 20 {
		d := peek()
		e.want("a peek at a used up quota is no strike", d, limited, 0)
		e.wantStruck("a peek at a used up quota", d, false)
	}
	if d := e.take(p); d.StrikesLeft < 2 && !e.gaps.NoPenalties {
		e.Errorf("after 20 peeks %d strikes are left, want at least 2", d.StrikesLeft)
	}
}

func testReset(e *engineTest) {
	l, p := capability[resetter](e), plan(ratelimit.PerDay(1))
	e.take(p)
	e.takeN("b", p, 1)
	if err := l.Reset(ctx, "a"); err != nil {
		e.Fatal(err)
	}
	e.want("after the reset", e.take(p), allowed, 0)
	e.want("another subject", e.takeN("b", p, 1), limited, 0)
	if err := l.Reset(ctx, "never seen"); err != nil {
		e.Errorf("reset of a subject that was never seen: %v", err)
	}
}

// testUnmetered tests the plans that have no quotas.
func testUnmetered(e *engineTest) {
	p := plan(ratelimit.PerDay(100))
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
		if l, ok := e.engine.Limiter.(engine.Banner); ok {
			nothing("Ban of a subject", l.Ban(ctx, "banned", time.Hour, ""))
			d, err := e.engine.Take(ctx, "banned", c.plan, 1)
			decided("Take for a banned subject", 1, d, err)
		}
		for _, cost := range []int64{1, 1000, math.MaxInt64} {
			d, err := e.engine.Take(ctx, "a", c.plan, cost)
			decided("Take", cost, d, err)
			if l, ok := e.engine.Limiter.(engine.Adjuster); ok {
				nothing("Adjust", l.Adjust(ctx, "a", &d, 0, ""))
				nothing("Adjust", l.Adjust(ctx, "a", &d, 7, ""))
			}
		}
		if l, ok := e.engine.Limiter.(engine.Peeker); ok {
			d, err := l.Peek(ctx, "a", c.plan)
			decided("Peek", 1, d, err)
		}
		for name, call := range map[string]struct {
			subject string
			cost    int64
		}{"no subject": {"", 1}, "a cost of nothing": {"a", 0}} {
			_, err := e.engine.Take(ctx, call.subject, c.plan, call.cost)
			e.wantInvalid(fmt.Sprint(name, " under ", c.plan), err, ratelimit.ErrInvalid)
		}
	}
	e.want("after requests under plans without quotas", e.take(p), allowed, 98)
}
