package ratelimittest

import (
	"context"
	"errors"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

func testPeek(b *bench) {
	peeker, ok := b.engine.Limiter.(ratelimit.Peeker)
	if !ok {
		b.Skip("skipped: the engine is no Peeker")
	}
	p := strict(penalty())
	if b.gaps.OneQuota {
		p = ratelimit.MustPlan("strict", penalty(), ratelimit.PerHour(1))
	}
	peek := func() ratelimit.Decision {
		b.Helper()
		d, err := peeker.Peek(context.Background(), "a", p)
		if err != nil {
			b.Fatal(err)
		}
		b.check(&d)
		return d
	}
	b.want("before anything", peek(), allowed, 1)
	b.want("a peek charges nothing", peek(), allowed, 1)
	b.take(p)
	for range 20 {
		b.want("a peek at a used up quota is no strike", peek(), limited, 0)
	}
	if b.gaps.NoPenalty {
		return
	}
	d := b.take(p)
	if d.StrikesLeft < 2 {
		b.Errorf("peeks left %d strikes", d.StrikesLeft)
	}
	if b.engine.Set == nil {
		return
	}
	b.advance(3 * time.Second) // the grace is over
	for d.StrikesLeft > 0 {
		d = b.take(p)
	}
	d = peek()
	b.want("a peek does not foresee a ban", d, limited, 0)
	if d.StrikesLeft != 0 {
		b.Errorf("before the ban a peek sees %d strikes left, want 0", d.StrikesLeft)
	}
	b.want("the request that a peek foretold with no strikes left", b.take(p), banned, 0)
	b.want("a peek sees a ban in force", peek(), banned, 0)
}

func testReset(b *bench) {
	resetter, ok := b.engine.Limiter.(ratelimit.Resetter)
	if !ok {
		b.Skip("skipped: the engine is no Resetter")
	}
	p := plan(ratelimit.PerDay(1))
	b.take(p)
	b.takeN("b", p, 1)
	if err := resetter.Reset(context.Background(), "a"); err != nil {
		b.Fatal(err)
	}
	b.want("after the reset", b.take(p), allowed, 0)
	b.want("another subject", b.takeN("b", p, 1), limited, 0)
	if err := resetter.Reset(context.Background(), "never seen"); err != nil {
		b.Errorf("reset of a subject that was never seen: %v", err)
	}
}

func testRefund(b *bench) {
	refunder, ok := b.engine.Limiter.(ratelimit.Refunder)
	if !ok {
		b.Skip("skipped: the engine is no Refunder")
	}
	p := plan(ratelimit.PerMinute(5), ratelimit.PerDay(10))
	refund := func(d ratelimit.Decision) {
		b.Helper()
		if err := refunder.Refund(context.Background(), "a", &d); err != nil {
			b.Fatal(err)
		}
	}
	if err := refunder.Refund(context.Background(), "a", nil); !errors.Is(err, ratelimit.ErrInvalid) {
		b.Errorf("a refund without a decision: got error %v, want one that wraps ErrInvalid", err)
	}
	refund(b.takeN("a", p, 3))
	d := b.takeN("a", p, 5)
	b.want("everything was given back", d, allowed, 0)
	refund(b.take(p)) // limited: there is nothing to give back
	b.want("a denial gives nothing back", b.take(p), limited, 0)
	b.advance(time.Minute)
	refund(d)
	d = b.take(p)
	if d.States[0].Remaining != 4 || d.States[1].Remaining != 9 {
		b.Errorf("a refund in the next minute: %d and %d remain, want 4 of the new minute and 9 of the day",
			d.States[0].Remaining, d.States[1].Remaining)
	}
	refund(d)
	refund(d)
	if d = b.take(p); d.States[0].Remaining != 4 {
		b.Errorf("a decision refunded twice left %d of 5 after one more request", d.States[0].Remaining)
	}
}

// testRefundOwnWindows holds that a refund does not reach windows that the
// decision was not charged in, such as those of a plan deployed beside it.
func testRefundOwnWindows(b *bench) {
	refunder, ok := b.engine.Limiter.(ratelimit.Refunder)
	if !ok {
		b.Skip("skipped: the engine is no Refunder")
	}
	before, after := plan(ratelimit.PerDay(100)), plan(ratelimit.PerHour(10), ratelimit.PerDay(100))
	d := b.takeN("a", before, 5)
	b.takeN("a", after, 10)
	if err := refunder.Refund(context.Background(), "a", &d); err != nil {
		b.Fatal(err)
	}
	b.want("the hour was opened after the charge", b.takeN("a", after, 1), limited, 0)
	d = b.takeN("a", before, 1)
	b.want("the day has the units back", d, allowed, 89)
	b.advance(time.Hour)
	b.takeN("a", after, 10)
	if err := refunder.Refund(context.Background(), "a", &d); err != nil {
		b.Fatal(err)
	}
	b.want("the next hour was opened after the charge", b.takeN("a", after, 1), limited, 0)
}

func testCharge(b *bench) {
	charger, ok := b.engine.Limiter.(ratelimit.UsageAdder)
	if !ok {
		b.Skip("skipped: the engine is no UsageAdder")
	}
	p := ratelimit.MustPlan("charged", penalty(), ratelimit.PerMinute(10), ratelimit.PerDay(100))
	charge := func(minute, day int64, at time.Time) {
		b.Helper()
		err := charger.AddUsage(context.Background(), "a", p, [ratelimit.MaxQuotas]int64{minute, day}, at)
		if err != nil {
			b.Fatal(err)
		}
	}
	left := func(what string, d ratelimit.Decision, minute, day int64) {
		b.Helper()
		if d.States[0].Remaining != minute || d.States[1].Remaining != day {
			b.Errorf("%s: %d of the minute and %d of the day are left, want %d and %d",
				what, d.States[0].Remaining, d.States[1].Remaining, minute, day)
		}
	}
	charge(3, 20, b.now)
	left("a subject never seen", b.take(p), 6, 79)
	charge(5, 5, b.now.Add(-time.Minute))
	left("the minute is over, the day is not", b.take(p), 5, 73)
	charge(50, 0, b.now)
	d := b.take(p)
	left("more than fits", d, 0, 73)
	b.want("no request of the minute is left", d, limited, 0)
	if !b.gaps.NoPenalty && d.StrikesLeft != penalty().Strikes {
		b.Errorf("a charge over the limit left %d strikes, want all %d", d.StrikesLeft, penalty().Strikes)
	}
	b.advance(time.Minute)
	charge(ratelimit.MaxLimit, ratelimit.MaxLimit, b.now)
	charge(1<<62, 1<<62, b.now)
	left("no count goes over the largest", b.take(p), 0, 0)
	b.advance(time.Minute)
	charge(4, 0, b.now.Add(-time.Minute))
	charge(3, 0, b.now.Add(time.Minute))
	d = b.take(p)
	left("the clock of the charge is a minute ahead", d, 7, 0)
	if want := b.now.Truncate(time.Minute).Add(2 * time.Minute).Unix(); d.States[0].Reset != want {
		b.Errorf("the clock of the charge is a minute ahead: the window ends at %d, want %d", d.States[0].Reset, want)
	}
	charge(1, 0, b.now.Add(time.Hour))
	if d = b.take(p); d.States[0].Reset > b.now.Add(2*time.Minute).Unix() {
		b.Errorf("a charge an hour ahead: the window ends at %d, more than a window ahead", d.States[0].Reset)
	}
	ended := b.now.Truncate(time.Minute).Add(5 * time.Minute)
	b.advance(ended.Sub(b.now))
	charge(9, 0, ended.Add(-time.Microsecond))
	left("the minute of the charge ends now", b.take(p), 10, 0)
	b.advance(48 * time.Hour)
	charge(2, 3, time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC))
	left("the clock of the charge is millennia ahead", b.take(p), 7, 96)
	charge(2, 3, time.Time{})
	charge(2, 3, time.Unix(-1, 0))
	left("the time of the charge was never set, or before 1970", b.take(p), 6, 95)
	for what, c := range map[string]struct {
		subject string
		plan    *ratelimit.Plan
		units   int64
	}{
		"negative units": {"a", p, -1},
		"no plan":        {"a", nil, 1},
		"no subject":     {"", p, 1},
	} {
		err := charger.AddUsage(context.Background(), c.subject, c.plan, [ratelimit.MaxQuotas]int64{c.units}, b.now)
		if !errors.Is(err, ratelimit.ErrInvalid) {
			b.Errorf("a charge with %s: %v, want ErrInvalid", what, err)
		}
	}
}
