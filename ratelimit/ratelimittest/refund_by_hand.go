package ratelimittest

import (
	"context"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

var refundsByHand = promise{
	name: "gives units back by hand", test: testRefundByHand, needsClock: true,
	excluded: func(g Gaps) bool { return g.OneQuota || g.UnitCostOnly || g.RollingWindows },
	text:     "Refund of what Peek returned, as Allowed and with another Cost, gives these units back to the quotas of its plan",
}

// testRefundByHand gives back units that no decision at hand was charged, as an operator
// does.
func testRefundByHand(e *engineTest) {
	engine, ok := e.engine.Limiter.(interface {
		ratelimit.Peeker
		ratelimit.Refunder
	})
	if !ok {
		e.Skip("skipped: the engine is not a Peeker and a Refunder")
	}
	peek := func(p *ratelimit.Plan) ratelimit.Decision {
		e.Helper()
		d, err := engine.Peek(context.Background(), "a", p)
		if err != nil {
			e.Fatal(err)
		}
		return d
	}
	giveBack := func(p *ratelimit.Plan, units int64) {
		e.Helper()
		d := peek(p)
		d.Outcome, d.Cost = allowed, units
		if err := engine.Refund(context.Background(), "a", &d); err != nil {
			e.Fatal(err)
		}
	}
	p, day := plan(ratelimit.PerMinute(100), ratelimit.PerDay(1000)), plan(ratelimit.PerDay(1000))
	left := func(step string, minute, day int64) {
		e.Helper()
		if d := peek(p); d.States[0].Remaining != minute || d.States[1].Remaining != day {
			e.Errorf("%s: %d of the minute and %d of the day are left, want %d and %d",
				step, d.States[0].Remaining, d.States[1].Remaining, minute, day)
		}
	}
	giveBack(p, 5)
	left("a subject never seen", 100, 1000)
	e.takeN("a", p, 100)
	giveBack(day, 30)
	left("given back to the day alone", 0, 930)
	giveBack(p, 20)
	left("given back to both by a limited subject", 20, 950)
	e.advance(time.Minute)
	giveBack(p, 40)
	left("nothing is used of the new minute", 100, 990)
	giveBack(day, 1000)
	left("more than was used", 100, 1000)
	if e.gaps.NoSmooth {
		return
	}
	smooth := plan(ratelimit.PerMinute(60).Smooth(10))
	e.takeN("a", smooth, 10)
	giveBack(smooth, 4)
	e.want("given back to a smooth quota", e.takeN("a", smooth, 4), allowed, 0)
	e.want("no more than that", e.takeN("a", smooth, 1), limited, 0)
}
