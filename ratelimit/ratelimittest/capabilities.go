package ratelimittest

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

func testPeek(e *engineTest) {
	peeker, ok := e.engine.Limiter.(ratelimit.Peeker)
	if !ok {
		e.Skip("skipped: the engine is not a Peeker")
	}
	p := strict(penalty())
	if e.gaps.OneQuota {
		p = ratelimit.MustPlan("strict", penalty(), ratelimit.PerHour(1))
	}
	peek := func() ratelimit.Decision {
		e.Helper()
		d, err := peeker.Peek(context.Background(), "a", p)
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
		e.wantStruck("a peek at a used up quota", d, false, false)
	}
	if e.gaps.NoPenalties {
		return
	}
	d := e.take(p)
	if d.StrikesLeft < 2 {
		e.Errorf("after 20 peeks %d strikes are left, want at least 2", d.StrikesLeft)
	}
	if e.engine.Set == nil {
		return
	}
	e.advance(3 * time.Second) // the grace is over
	for d.StrikesLeft > 0 {
		d = e.take(p)
	}
	d = peek()
	e.want("a peek does not foresee a ban", d, limited, 0)
	if d.StrikesLeft != 0 {
		e.Errorf("before the ban a peek sees %d strikes left, want 0", d.StrikesLeft)
	}
	e.wantStruck("a peek before the ban", d, false, false)
	e.want("the request that a peek foretold with no strikes left", e.take(p), banned, 0)
	d = peek()
	e.want("a peek sees a ban in force", d, banned, 0)
	e.wantStruck("a peek during the ban", d, false, false)
}

func testReset(e *engineTest) {
	resetter, ok := e.engine.Limiter.(ratelimit.Resetter)
	if !ok {
		e.Skip("skipped: the engine is not a Resetter")
	}
	p := plan(ratelimit.PerDay(1))
	e.take(p)
	e.takeN("b", p, 1)
	if err := resetter.Reset(context.Background(), "a"); err != nil {
		e.Fatal(err)
	}
	e.want("after the reset", e.take(p), allowed, 0)
	e.want("another subject", e.takeN("b", p, 1), limited, 0)
	if err := resetter.Reset(context.Background(), "never seen"); err != nil {
		e.Errorf("reset of a subject that was never seen: %v", err)
	}
}

func testRefund(e *engineTest) {
	refunder, ok := e.engine.Limiter.(ratelimit.Refunder)
	if !ok {
		e.Skip("skipped: the engine is not a Refunder")
	}
	p := plan(ratelimit.PerMinute(5), ratelimit.PerDay(10))
	refund := func(d ratelimit.Decision) {
		e.Helper()
		if err := refunder.Refund(context.Background(), "a", &d); err != nil {
			e.Fatal(err)
		}
	}
	if err := refunder.Refund(context.Background(), "a", nil); !errors.Is(err, ratelimit.ErrInvalid) {
		e.Errorf("a refund without a decision: got error %v, want one that wraps ErrInvalid", err)
	}
	refund(e.takeN("a", p, 3))
	d := e.takeN("a", p, 5)
	e.want("everything was given back", d, allowed, 0)
	refund(e.take(p)) // limited: there is nothing to give back
	e.want("a denial gives nothing back", e.take(p), limited, 0)
	e.advance(time.Minute)
	refund(d)
	d = e.take(p)
	if d.States[0].Remaining != 4 || d.States[1].Remaining != 9 {
		e.Errorf("a refund in the next minute: %d and %d remain, want 4 of the new minute and 9 of the day",
			d.States[0].Remaining, d.States[1].Remaining)
	}
	refund(d)
	refund(d)
	if d = e.take(p); d.States[0].Remaining != 4 {
		e.Errorf("a decision refunded twice left %d of 5 after one more request", d.States[0].Remaining)
	}
}

// testRefundOwnWindows holds that a refund does not reach windows that the
// decision was not charged in, such as those of a plan deployed beside it.
func testRefundOwnWindows(e *engineTest) {
	refunder, ok := e.engine.Limiter.(ratelimit.Refunder)
	if !ok {
		e.Skip("skipped: the engine is not a Refunder")
	}
	before, after := plan(ratelimit.PerDay(100)), plan(ratelimit.PerHour(10), ratelimit.PerDay(100))
	d := e.takeN("a", before, 5)
	e.takeN("a", after, 10)
	if err := refunder.Refund(context.Background(), "a", &d); err != nil {
		e.Fatal(err)
	}
	e.want("the hour was opened after the charge", e.takeN("a", after, 1), limited, 0)
	d = e.takeN("a", before, 1)
	e.want("the day has the units back", d, allowed, 89)
	e.advance(time.Hour)
	e.takeN("a", after, 10)
	if err := refunder.Refund(context.Background(), "a", &d); err != nil {
		e.Fatal(err)
	}
	e.want("the next hour was opened after the charge", e.takeN("a", after, 1), limited, 0)
	d = e.takeN("b", after, 5)
	if err := refunder.Refund(context.Background(), "b", &d); err != nil {
		e.Fatal(err)
	}
	e.takeN("b", before, 4)
	e.want("the hour goes on with nothing used", e.takeN("b", after, 1), allowed, 5)
}

func testAddUsage(e *engineTest) {
	adder, ok := e.engine.Limiter.(ratelimit.UsageAdder)
	if !ok {
		e.Skip("skipped: the engine is not a UsageAdder")
	}
	p := ratelimit.MustPlan("usage added", penalty(), ratelimit.PerMinute(10), ratelimit.PerDay(100))
	addUsage := func(minute, day int64, at time.Time) {
		e.Helper()
		err := adder.AddUsage(context.Background(), "a", p, [ratelimit.MaxQuotas]int64{minute, day}, at)
		if err != nil {
			e.Fatal(err)
		}
	}
	left := func(what string, d ratelimit.Decision, minute, day int64) {
		e.Helper()
		if d.States[0].Remaining != minute || d.States[1].Remaining != day {
			e.Errorf("%s: %d of the minute and %d of the day are left, want %d and %d",
				what, d.States[0].Remaining, d.States[1].Remaining, minute, day)
		}
	}
	addUsage(3, 20, e.now)
	left("a subject never seen", e.take(p), 6, 79)
	addUsage(5, 5, e.now.Add(-time.Minute))
	left("the minute is over, the day is not", e.take(p), 5, 73)
	addUsage(50, 0, e.now)
	d := e.take(p)
	left("more than fits", d, 0, 73)
	e.want("no request of the minute is left", d, limited, 0)
	if !e.gaps.NoPenalties && d.StrikesLeft != penalty().Strikes {
		e.Errorf("adding usage over the limit left %d strikes, want all %d", d.StrikesLeft, penalty().Strikes)
	}
	e.advance(time.Minute)
	left("a new minute", e.take(p), 9, 72)
	addUsage(0, 0, e.now.Add(time.Minute))
	addUsage(math.MaxInt64, 1<<32, e.now)
	left("no count goes over the largest", e.take(p), 0, 0)
	addUsage(1<<62, math.MaxInt64, e.now)
	d = e.take(p)
	left("nor if more is added", d, 0, 0)
	if want := e.now.Truncate(time.Minute).Add(time.Minute).Unix(); d.States[0].Reset != want {
		e.Errorf("no usage a minute ahead: the window ends at %d, want %d", d.States[0].Reset, want)
	}
	e.advance(time.Minute)
	addUsage(4, 0, e.now.Add(-time.Minute))
	addUsage(3, 0, e.now.Add(time.Minute))
	d = e.take(p)
	left("the time of the usage is a minute ahead", d, 7, 0)
	if want := e.now.Truncate(time.Minute).Add(2 * time.Minute).Unix(); d.States[0].Reset != want {
		e.Errorf("the time of the usage is a minute ahead: the window ends at %d, want %d", d.States[0].Reset, want)
	}
	addUsage(1, 0, e.now.Add(time.Hour))
	if d = e.take(p); d.States[0].Reset > e.now.Add(2*time.Minute).Unix() {
		e.Errorf("the time of the usage is an hour ahead: the window ends at %d, more than a window ahead", d.States[0].Reset)
	}
	ended := e.now.Truncate(time.Minute).Add(5 * time.Minute)
	e.advance(ended.Sub(e.now))
	addUsage(9, 0, ended.Add(-time.Microsecond))
	left("the minute of the usage ends now", e.take(p), 10, 0)
	e.advance(48 * time.Hour)
	addUsage(2, 3, time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC))
	left("the time of the usage is millennia ahead", e.take(p), 7, 96)
	addUsage(2, 3, time.Time{})
	addUsage(2, 3, time.Unix(-1, 0))
	left("the time of the usage is not set, or before 1970", e.take(p), 6, 95)
	for what, c := range map[string]struct {
		subject string
		plan    *ratelimit.Plan
		units   int64
	}{
		"negative units": {"a", p, -1},
		"negative units under a plan without quotas": {"a", ratelimit.UnlimitedPlan("all"), -1},
		"no plan":    {"a", nil, 1},
		"no subject": {"", p, 1},
	} {
		err := adder.AddUsage(context.Background(), c.subject, c.plan, [ratelimit.MaxQuotas]int64{c.units}, e.now)
		if !errors.Is(err, ratelimit.ErrInvalid) {
			e.Errorf("AddUsage with %s: got error %v, want one that wraps ErrInvalid", what, err)
		}
	}
}
