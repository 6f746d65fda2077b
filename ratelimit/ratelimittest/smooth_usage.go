package ratelimittest

import (
	"context"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

func testSmoothRefund(e *engineTest) {
	refunder, ok := e.engine.Limiter.(ratelimit.Refunder)
	if !ok {
		e.Skip("skipped: the engine is not a Refunder")
	}
	refund := func(d ratelimit.Decision) {
		e.Helper()
		if err := refunder.Refund(context.Background(), "a", &d); err != nil {
			e.Fatal(err)
		}
	}
	p := plan(ratelimit.PerMinute(60).Smooth(10))
	d := e.takeN("a", p, 10)
	refund(d)
	e.wantSmooth("everything was given back", e.takeN("a", p, 9), allowed, 1, 9*time.Second, 0)
	refund(d)
	e.want("a refund makes the bucket no more than full", e.takeN("a", p, 10), allowed, 0)
	e.advance(4 * time.Second)
	refund(d)
	e.want("after four seconds", e.takeN("a", p, 10), allowed, 0)
	e.advance(11 * time.Second)
	late := e.takeN("a", p, 10)
	refund(d)
	e.want("what has come back by itself is not given back again", e.takeN("a", p, 1), limited, 0)
	refund(late)
	e.want("the last one is", e.takeN("a", p, 10), allowed, 0)
}

func testSmoothAddUsage(e *engineTest) {
	adder, ok := e.engine.Limiter.(ratelimit.UsageAdder)
	if !ok {
		e.Skip("skipped: the engine is not a UsageAdder")
	}
	p := plan(ratelimit.PerMinute(60).Smooth(10))
	addUsage := func(subject string, units int64, at time.Time) {
		e.Helper()
		if err := adder.AddUsage(context.Background(), subject, p, [ratelimit.MaxQuotas]int64{units}, at); err != nil {
			e.Fatal(err)
		}
	}
	const sec = time.Second
	e.set(e.now.Truncate(sec))
	addUsage("a", 3, e.now)
	e.wantSmooth("a subject never seen", e.take(p), allowed, 6, 4*sec, 0)
	addUsage("a", 26, e.now)
	e.wantSmooth("more than the burst is owed", e.take(p), limited, 0, 30*sec, 21*sec)
	e.advance(21 * sec)
	e.wantSmooth("once that is back", e.take(p), allowed, 0, 10*sec, 0)
	addUsage("a", ratelimit.MaxLimit, e.now)
	addUsage("a", 1<<62, e.now)
	e.wantSmooth("a subject owes at most the limit", e.take(p), limited, 0, 60*sec, 51*sec)
	addUsage("b", 8, e.now.Add(-6*sec))
	e.wantSmooth("what has come back since does not count", e.takeN("b", p, 1), allowed, 6, 4*sec, 0)
	addUsage("c", 8, e.now.Add(-20*sec))
	e.wantSmooth("if all of it has, nothing counts", e.takeN("c", p, 1), allowed, 9, sec, 0)
	addUsage("c", 8, e.now.Add(-61*sec))
	e.wantSmooth("usage of more than a window ago is dropped", e.takeN("c", p, 1), allowed, 8, 2*sec, 0)
	addUsage("c", 2, e.now.Add(time.Hour))
	e.wantSmooth("usage of a clock that is ahead counts as of now", e.takeN("c", p, 1), allowed, 5, 5*sec, 0)
}
