package ratelimittest

import (
	"context"
	"errors"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

const (
	allowed = ratelimit.Allowed
	limited = ratelimit.Limited
	banned  = ratelimit.Banned
)

func testCountsDown(b *bench) {
	p := plan(ratelimit.PerDay(3))
	b.want("the first of three", b.take(p), allowed, 2)
	b.want("the second of three", b.take(p), allowed, 1)
	b.want("the third of three", b.take(p), allowed, 0)
}

func testExactLimit(b *bench) {
	const limit = 100
	p := plan(ratelimit.PerDay(limit))
	for range limit {
		if d := b.take(p); !d.Allowed() {
			b.Fatal("a request within the limit was refused")
		}
	}
	for range 3 {
		b.want("over the limit", b.take(p), limited, 0)
	}
}

func testSubjectsApart(b *bench) {
	p := plan(ratelimit.PerDay(1))
	names := []string{"a", "b", " ", "A", "a ", "a\x00", "{a}", "a:b", "ключ", string(make([]byte, 300))}
	for _, name := range names {
		b.want(strconv.Quote(name)+" has a quota of its own", b.takeN(name, p, 1), allowed, 0)
	}
	for _, name := range names {
		b.want(strconv.Quote(name)+" has used its quota", b.takeN(name, p, 1), limited, 0)
	}
}

func testWrongCalls(b *bench) {
	p := plan(ratelimit.PerDay(10))
	b.take(p)
	calls := func() {
		b.Helper()
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
			d, err := b.engine.Take(context.Background(), call.subject, call.plan, call.cost)
			if !errors.Is(err, call.want) || !errors.Is(err, ratelimit.ErrInvalid) {
				b.Errorf("%s: got %v and error %v, want one that wraps %q", call.name, d.Outcome, err, call.want)
			}
		}
	}
	calls()
	b.want("wrong calls charge nothing", b.take(p), allowed, 8)
	if !b.gaps.PlanBound && !b.gaps.UnitCost {
		b.takeN("a", plan(ratelimit.PerDay(100)), 50)
		calls() // with more used than the smaller plan allows
	}
}

func testNoSubject(b *bench) {
	ctx, p := context.Background(), plan(ratelimit.PerDay(10))
	d := b.take(p)
	refused := func(name string, err error) {
		b.Helper()
		if !errors.Is(err, ratelimit.ErrInvalid) {
			b.Errorf("%s without a subject: got error %v, want one that wraps %q", name, err, ratelimit.ErrInvalid)
		}
	}
	if l, ok := b.engine.Limiter.(ratelimit.Peeker); ok {
		_, err := l.Peek(ctx, "", p)
		refused("Peek", err)
	}
	if l, ok := b.engine.Limiter.(ratelimit.Resetter); ok {
		refused("Reset", l.Reset(ctx, ""))
	}
	if l, ok := b.engine.Limiter.(ratelimit.Refunder); ok {
		refused("Refund", l.Refund(ctx, "", &d))
	}
	if l, ok := b.engine.Limiter.(ratelimit.UsageAdder); ok {
		refused("Charge", l.AddUsage(ctx, "", p, [ratelimit.MaxQuotas]int64{1}, time.Unix(0, d.Time)))
	}
	if l, ok := b.engine.Limiter.(ratelimit.Banner); ok {
		refused("Ban", l.Ban(ctx, "", time.Second))
		_, err := l.Unban(ctx, "")
		refused("Unban", err)
	}
}

func testConcurrent(b *bench) {
	const callers, each, limit = 16, 50, 333
	p := plan(ratelimit.PerDay(limit))
	if b.engine.Set == nil { // a day might end in the middle
		p = plan(ratelimit.Quota{Limit: limit, Window: ratelimit.MaxWindow})
	}
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				d, err := b.engine.Take(context.Background(), "a", p, 1)
				if err != nil {
					b.Error(err)
				}
				if d.Allowed() {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if got := admitted.Load(); got != limit {
		b.Errorf("%d concurrent requests against a limit of %d: %d were admitted", callers*each, limit, got)
	}
}

func testAllOrNone(b *bench) {
	p := plan(ratelimit.PerHour(3), ratelimit.PerDay(8))
	for range 3 {
		b.take(p)
	}
	for range 5 {
		b.want("the hour is used up", b.take(p), limited, 0)
	}
	if d := b.take(p); d.States[1].Remaining != 5 {
		b.Errorf("3 of 8 were admitted, then some refused: %d remain of the day, want 5", d.States[1].Remaining)
	}
}

func testCost(b *bench) {
	p := plan(ratelimit.PerDay(10))
	b.want("7 of 10", b.takeN("a", p, 7), allowed, 3)
	b.want("4 do not fit into 3", b.takeN("a", p, 4), limited, 3)
	b.want("3 do", b.takeN("a", p, 3), allowed, 0)
}

func testApplicable(b *bench) {
	p := plan(ratelimit.PerMinute(5), ratelimit.PerDay(6))
	minute := b.now.Truncate(time.Minute).Add(time.Minute).Unix()
	day := b.now.Truncate(24 * time.Hour).Add(24 * time.Hour).Unix()
	expect := func(promise string, d ratelimit.Decision, limit, reset int64) {
		b.Helper()
		if d.Limit() != limit || d.Reset() != reset {
			b.Errorf("%s: got limit %d and reset %d, want %d and %d", promise, d.Limit(), d.Reset(), limit, reset)
		}
	}
	expect("the minute has less left", b.take(p), 5, minute)
	for range 4 {
		b.take(p)
	}
	d := b.take(p)
	expect("the minute refuses", d, 5, minute)
	b.advance(30 * time.Second)
	expect("the day has less left", b.take(p), 6, day)
	expect("the day refuses", b.take(p), 6, day)

	tie := plan(ratelimit.PerMinute(2), ratelimit.PerDay(2))
	expect("on a tie the later reset is shown", b.takeN("tie", tie, 1), 2, day)
	b.takeN("tie", tie, 1)
	expect("of two that refuse the later reset is shown", b.takeN("tie", tie, 1), 2, day)
}

func testFourQuotas(b *bench) {
	p := plan(ratelimit.Quota{Limit: 9, Window: 2 * time.Hour}, ratelimit.PerDay(4), ratelimit.PerHour(10),
		ratelimit.Quota{Limit: 20, Window: 48 * time.Hour})
	d := b.take(p)
	for i := range p.Len() {
		if got, want := d.States[i].Remaining, p.Quota(i).Limit-1; got != want {
			b.Errorf("%v: %d remaining after the first, want %d", p.Quota(i), got, want)
		}
	}
	for range 3 {
		b.take(p)
	}
	b.want("the smallest of four refuses", b.take(p), limited, 0)
}

func testAligned(b *bench) {
	p := plan(ratelimit.PerMinute(1))
	b.want("the first in the minute", b.take(p), allowed, 0)
	b.advance(29*time.Second + 749*time.Millisecond)
	b.want("a millisecond before the minute ends", b.take(p), limited, 0)
	b.advance(time.Millisecond)
	b.want("when the minute ends", b.take(p), allowed, 0)
	b.advance(59 * time.Second)
	b.want("within the next minute", b.take(p), limited, 0)
}

func testRetryAfter(b *bench) {
	p := plan(ratelimit.PerMinute(1))
	b.take(p)
	d := b.take(p)
	if d.Allowed() {
		b.Fatal("the second of one was admitted")
	}
	b.advance(time.Duration(d.RetryAfterSeconds()) * time.Second)
	if d := b.take(p); !d.Allowed() {
		b.Errorf("after waiting for Retry-After the request is %v for another %v", d.Outcome, d.RetryAfter)
	}
}

func testPlanChange(b *bench) {
	small := plan(ratelimit.PerHour(5), ratelimit.PerDay(10))
	large := plan(ratelimit.PerHour(50), ratelimit.PerDay(100))
	for range 4 {
		b.take(small)
	}
	b.want("the usage is kept and the limit is new", b.take(large), allowed, 45)
	b.want("and back", b.take(small), limited, 0)
	other := plan(ratelimit.PerDay(7))
	b.want("a plan with one window in common", b.take(other), allowed, 1)
	b.want("the window that it did not have goes on", b.take(large), allowed, 43)
}

func testClockBack(b *bench) {
	p := plan(ratelimit.PerMinute(2), ratelimit.PerDay(1000))
	for _, step := range []time.Duration{time.Millisecond, time.Second, 31 * time.Second, time.Hour, 24 * time.Hour, 400 * 24 * time.Hour} {
		name := "back by " + step.String()
		b.takeN(name, p, 1)
		b.takeN(name, p, 1)
		b.advance(-step)
		d := b.takeN(name, p, 1)
		b.want(name, d, limited, 0)
		if d.RetryAfter > 2*time.Minute {
			b.Errorf("%s: locked out for %v, want at most two windows", name, d.RetryAfter)
		}
		b.advance(time.Duration(d.RetryAfterSeconds()) * time.Second)
		if d := b.takeN(name, p, 1); !d.Allowed() {
			b.Errorf("%s: still %v after the wait", name, d.Outcome)
		}
	}
}
