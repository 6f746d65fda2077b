package enginetest

import (
	"math"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

func testRetryAfter(e *engineTest) {
	p := plan(ratelimit.PerMinute(1))
	e.take(p)
	d := e.take(p)
	if d.Allowed() {
		e.Fatal("the second request against a limit of 1 was admitted")
	}
	e.advance((d.RetryAfter + time.Second - 1).Truncate(time.Second))
	if d := e.take(p); !d.Allowed() {
		e.Errorf("after waiting for Retry-After the request is %v for another %v, want allowed", d.Outcome, d.RetryAfter)
	}
}

// testClockBack steps the clock back to before windows, months and bursts began.
func testClockBack(e *engineTest) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		name    string
		start   time.Time
		plan    *ratelimit.Plan
		burst   int64
		longest time.Duration
		skip    bool
	}{
		{"minutes", start, plan(ratelimit.PerMinute(2), ratelimit.PerDay(1000)), 2, 2 * time.Minute, false},
		{"months", date(2026, time.July, 1, 0, 0), plan(ratelimit.PerMonth(2), ratelimit.PerDay(1000).In(berlin)), 2, 65 * day, e.gaps.NoCalendars},
		{"bursts", start, plan(ratelimit.PerMinute(60).Smooth(10), ratelimit.PerDay(1000).Smooth(1000)), 10, day, e.gaps.NoSmooth},
	} {
		for _, step := range []time.Duration{time.Millisecond, time.Second, 31 * time.Second, time.Hour, day, 30 * day, 400 * day} {
			if test.skip {
				continue
			}
			name := test.name + ", back by " + step.String()
			e.set(test.start)
			e.takeN(name, test.plan, test.burst)
			e.advance(-step)
			d := e.takeN(name, test.plan, 1)
			e.want(name, d, limited, 0)
			if d.RetryAfter > test.longest {
				e.Errorf("%s: the client must wait for %v, want %v at most", name, d.RetryAfter, test.longest)
			}
			e.advance(d.RetryAfter)
			if d := e.takeN(name, test.plan, 1); !d.Allowed() {
				e.Errorf("%s: after waiting for RetryAfter the request is %v, want allowed", name, d.Outcome)
			}
		}
	}
}

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
			_, err := e.engine.Take(ctx, call.subject, call.plan, call.cost)
			e.wantInvalid(call.name, err, call.want)
		}
	}
	calls()
	e.want("wrong calls charge nothing", e.take(p), allowed, 8)
	if !e.gaps.UsagePerPlan {
		e.takeN("a", plan(ratelimit.PerDay(100)), 50)
		calls() // with more used than the smaller plan allows
	}
}

func testNoSubject(e *engineTest) {
	p := plan(ratelimit.PerDay(10))
	d := e.take(p)
	refused := func(name string, err error) { e.wantInvalid(name+" without a subject", err, ratelimit.ErrInvalid) }
	if l, ok := e.engine.Limiter.(engine.Peeker); ok {
		_, err := l.Peek(ctx, "", p)
		refused("Peek", err)
	}
	if l, ok := e.engine.Limiter.(resetter); ok {
		refused("Reset", l.Reset(ctx, ""))
	}
	if l, ok := e.engine.Limiter.(engine.Adjuster); ok {
		refused("Adjust", l.Adjust(ctx, "", &d, 0, ""))
	}
	if l, ok := e.engine.Limiter.(engine.Banner); ok {
		refused("Ban", l.Ban(ctx, "", time.Second, ""))
		_, err := l.Unban(ctx, "")
		refused("Unban", err)
	}
}

func testUncountable(e *engineTest) {
	var quotas []ratelimit.Quota
	if e.gaps.NoCalendars {
		quotas = append(quotas, ratelimit.PerMonth(5), ratelimit.PerDay(5).In(time.UTC))
	}
	if e.gaps.NoSmooth {
		quotas = append(quotas, ratelimit.PerMinute(5).Smooth(5))
	}
	for _, q := range quotas {
		_, err := e.engine.Take(ctx, "a", plan(q), 1)
		e.wantInvalid(q.String(), err, ratelimit.ErrInvalid)
	}
}
