package enginetest

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var adjustments = []promise{
	{
		name: "refunds", test: testRefund, needsClock: true,
		excluded: func(g Gaps) bool { return g.OneQuota },
		text:     "Adjust to 0 units gives back what a decision was charged, and never more than was used",
	},
	{
		name: "adjusts the windows of a charge and no others", test: testAdjustOwnWindows, needsClock: true,
		excluded: func(g Gaps) bool { return g.OneQuota || g.RollingWindows || g.UsagePerPlan },
		text: "Adjust changes all windows that the charge has reached and that are open, those of other plans too, " +
			"and none that was opened later",
	},
	{
		name: "adjusts the months of a charge", test: testCalendarAdjust, needsClock: true,
		excluded: func(g Gaps) bool { return g.NoCalendars || g.OneQuota },
		text:     "Adjust changes the month or day that was charged, also if the calendar changes, and not the next one",
	},
	{
		name: "adjusts smooth quotas", test: testSmoothAdjust, needsClock: true,
		excluded: func(g Gaps) bool { return g.NoSmooth },
		text:     "Adjust gives back to a smooth quota what has not come back by itself, and adds up to the limit",
	},
	{
		name: "counts charges that another engine has made", test: testAdjustElsewhere, needsClock: true,
		excluded: func(g Gaps) bool { return g.OneQuota },
		text:     "Adjust from a cost of 0 adds units to windows that are open, opens those that are not, and is not a strike",
	},
	{
		name: "counts an id once", test: testAdjustOnce,
		text: "Adjust with an id that was used for the subject changes nothing, and without an id each call counts",
	},
}

// adjuster skips the test if the engine is none.
func (e *engineTest) adjuster() engine.Adjuster {
	a, ok := e.engine.Limiter.(engine.Adjuster)
	if !ok {
		e.Skip("skipped: the engine is not an Adjuster")
	}
	return a
}

// adjust makes the charge d cost some units.
func (e *engineTest) adjust(subject string, d *ratelimit.Decision, units int64) {
	e.Helper()
	if err := e.adjuster().Adjust(context.Background(), subject, d, units, ""); err != nil {
		e.Fatalf("adjust from %d to %d units: %v", d.Cost, units, err)
	}
	d.Cost = units
}

// used fails unless the subject has used so many units of the plan's quotas, which has room.
func (e *engineTest) used(step, subject string, p *ratelimit.Plan, want ...int64) {
	e.Helper()
	d := e.takeN(subject, p, 1)
	for i, n := range want {
		if used := engine.Of(p).Quota(i).Limit - d.States[i].Remaining - 1; !d.Allowed() || used != n {
			e.Fatalf("%s: the request is %v, and %d units of %v were used, want %d", step, d.Outcome, used, engine.Of(p).Quota(i), n)
		}
	}
	e.adjust(subject, &d, 0)
}

func testRefund(e *engineTest) {
	adjuster := e.adjuster()
	p := plan(ratelimit.PerMinute(5), ratelimit.PerDay(10))
	d := e.takeN("a", p, 3)
	for what, c := range map[string]struct {
		subject string
		d       *ratelimit.Decision
		units   int64
	}{
		"no decision":         {"a", nil, 0},
		"no subject":          {"", &d, 0},
		"no plan":             {"a", &ratelimit.Decision{Outcome: allowed, Cost: 1}, 0},
		"negative units":      {"a", &d, -1},
		"a cost less than 0":  {"a", &ratelimit.Decision{Outcome: allowed, Plan: p, Cost: -1, States: d.States}, 0},
		"the most negative":   {"a", &d, math.MinInt64},
		"a cost that is that": {"a", &ratelimit.Decision{Outcome: allowed, Plan: p, Cost: math.MinInt64, States: d.States}, math.MaxInt64},
	} {
		if err := adjuster.Adjust(context.Background(), c.subject, c.d, c.units, ""); !errors.Is(err, ratelimit.ErrInvalid) {
			e.Errorf("Adjust with %s: got error %v, want one that wraps ErrInvalid", what, err)
		}
	}
	e.adjust("a", &d, 0)
	d = e.takeN("a", p, 5)
	e.want("everything was given back", d, allowed, 0)
	denied := e.take(p)
	e.adjust("a", &denied, 0)
	e.want("a denial gives nothing back", e.take(p), limited, 0)
	e.advance(time.Minute)
	e.adjust("a", &d, 0)
	d = e.take(p)
	if d.States[0].Remaining != 4 || d.States[1].Remaining != 9 {
		e.Errorf("a refund in the next minute: %d and %d remain, want 4 of the new minute and 9 of the day",
			d.States[0].Remaining, d.States[1].Remaining)
	}
	twice := d
	e.adjust("a", &d, 0)
	e.adjust("a", &twice, 0)
	if d = e.take(p); d.States[0].Remaining != 4 {
		e.Errorf("a decision refunded twice left %d of 5 after one more request", d.States[0].Remaining)
	}
}

func testAdjustOwnWindows(e *engineTest) {
	minute, hour, day := plan(ratelimit.PerMinute(1000)), plan(ratelimit.PerHour(1000)), plan(ratelimit.PerDay(1000))
	e.adjuster()
	e.takeN("a", day, 60)
	d := e.takeN("a", minute, 1)
	e.adjust("a", &d, 40)
	e.used("settled up under a plan without a day", "a", day, 100)
	e.takeN("a", hour, 7)
	e.adjust("a", &d, 30)
	e.used("the hour was opened after the charge", "a", hour, 7)
	e.used("settled down", "a", day, 97)
	e.advance(time.Minute)
	e.adjust("a", &d, 200)
	e.used("the minute of the charge is over", "a", minute, 0)
	e.used("the hour was opened after it", "a", hour, 7)
	e.used("its day is open", "a", day, 267)
	e.adjust("a", &d, 0)
	e.used("refunded", "a", day, 67)
	e.advance(-31 * time.Second) // into the minute before
	e.adjust("a", &d, 50)
	e.used("settled up after the clock stepped back", "a", day, 117)
	e.adjust("a", &d, 20)
	e.used("and down", "a", day, 87)
	e.adjust("a", &d, math.MaxInt64)
	d.Cost = fixedwindow.MaxUnits
	e.adjust("a", &d, 3)
	e.used("from the largest cost, of a day that held no more", "a", day, 3)
	e.used("of a minute that was opened later", "a", minute, 0)
	e.advance(24 * time.Hour)
	e.adjust("a", &d, 500)
	e.used("a day later", "a", day, 0)

	small := plan(ratelimit.PerMinute(3), ratelimit.PerDay(1000))
	d = e.takeN("b", small, 3)
	e.adjust("b", &d, 1_000_000)
	e.adjust("b", &d, 2)
	e.used("far up and down under a small limit", "b", day, 2)
}

func testCalendarAdjust(e *engineTest) {
	e.adjuster()
	month, billing := plan(ratelimit.PerMonth(500)), plan(ratelimit.PerMonth(500).From(17))
	before := e.takeN("a", month, 3)
	after := e.takeN("a", billing, 1)
	e.adjust("a", &before, 5)
	e.used("a charge before the change of the billing day", "a", billing, 6)
	e.adjust("a", &after, 0)
	e.used("a charge after it", "a", month, 5)
	e.set(date(2026, time.April, 1, 0, 0))
	e.used("in April", "a", billing, 0)
	e.adjust("a", &before, 100)
	e.used("what March was charged does not count in April", "a", billing, 0)
	e.takeN("a", billing, 9)
	e.adjust("a", &before, 0)
	e.used("nor is it given back to April", "a", billing, 9)

	// Another engine has counted by another calendar.
	elsewhere := e.takeN("b", month, 10) // until 1 May
	e.takeN("c", billing, 10)            // until 17 April
	elsewhere.Cost = 0
	e.adjust("c", &elsewhere, 20)
	e.used("in the month that is open", "c", billing, 30)
	e.set(date(2026, time.April, 16, 23, 59))
	e.used("which keeps its end", "c", billing, 30)
	e.set(date(2026, time.April, 17, 0, 0))
	e.used("which keeps its end", "c", billing, 0)

	// A day or month that follows the charge's holds nothing of it, also if the clock steps
	// back. These end as soon after each other as any.
	for _, c := range []struct {
		last       time.Time
		plan, next *ratelimit.Plan
	}{
		{date(2026, time.June, 1, 23, 59), plan(ratelimit.PerDay(1000).In(time.UTC)), plan(ratelimit.PerDay(1000).In(zone("Asia/Dubai")))},
		{date(2027, time.January, 31, 23, 59), month, month},
	} {
		subject := c.last.String()
		e.set(c.last)
		d := e.takeN(subject, c.plan, 7)
		e.advance(2 * time.Minute)
		e.takeN(subject, c.next, 9)
		e.advance(-2 * time.Minute)
		e.adjust(subject, &d, 0)
		e.used("a refund before the midnight after which the window begins", subject, c.plan, 9)
		e.adjust(subject, &d, 4)
		e.used("units that are added then", subject, c.plan, 13)
	}

	// One that ends later, but not so much later, counts what another engine was charged.
	e.set(date(2027, time.June, 1, 0, 30))
	for subject, plans := range map[string][2]*ratelimit.Plan{
		"e": {plan(ratelimit.PerDay(1000).In(zone("Asia/Dubai"))), plan(ratelimit.PerDay(1000).In(zone("America/Noronha")))},
		"f": {plan(ratelimit.PerMonth(1000).From(28)), plan(ratelimit.PerMonth(1000).From(2))},
	} {
		e.takeN(subject, plans[0], 9)
		d := engine.Uncounted(plans[1], 0, e.now)
		d.Cost = 4
		e.adjust(subject, &d, 0)
		e.used("a refund in the window that ends first", subject, plans[0], 5)
	}
}

func testSmoothAdjust(e *engineTest) {
	e.adjuster()
	const sec = time.Second
	p := plan(ratelimit.PerMinute(60).Smooth(10))
	e.set(e.now.Truncate(sec))
	d := e.takeN("a", p, 10)
	twice := d
	e.adjust("a", &d, 0)
	e.wantSmooth("everything was given back", e.takeN("a", p, 9), allowed, 1, 9*sec, 0)
	e.adjust("a", &twice, 0)
	e.want("a refund makes the bucket no more than full", e.takeN("a", p, 10), allowed, 0)
	e.advance(11 * sec)
	late := e.takeN("a", p, 10)
	twice.Cost = 10
	e.adjust("a", &twice, 0)
	e.want("what has come back by itself is not given back again", e.takeN("a", p, 1), limited, 0)
	e.adjust("a", &late, 0)
	e.want("the last one is", e.takeN("a", p, 10), allowed, 0)

	late.Time = time.Date(1920, time.January, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	late.Cost, late.States[0].Reset = 10, -1
	e.adjust("a", &late, 0)
	e.want("what was charged before 1970 has come back", e.takeN("a", p, 1), limited, 0)

	d = e.takeN("b", p, 9)
	e.advance(9*sec - time.Millisecond)
	e.takeN("b", p, 9)
	e.adjust("b", &d, 0)
	e.wantSmooth("a millisecond before the last unit is back, that alone is given back", e.takeN("b", p, 1), allowed, 0, 10*sec, 0)

	d = e.takeN("c", p, 4)
	e.adjust("c", &d, 30)
	e.wantSmooth("more than the burst is owed", e.takeN("c", p, 1), limited, 0, 30*sec, 21*sec)
	e.advance(3 * sec)
	e.adjust("c", &d, 8)
	e.wantSmooth("3 of the 4 units of the charge have come back", e.takeN("c", p, 1), limited, 0, 26*sec, 17*sec)
	e.adjust("c", &d, fixedwindow.MaxUnits)
	e.wantSmooth("a subject owes at most the limit", e.takeN("c", p, 1), limited, 0, 60*sec, 51*sec)
	d.Cost = math.MaxInt64
	e.adjust("c", &d, 8)
	e.wantSmooth("from the largest cost to 8 units", e.takeN("c", p, 1), limited, 0, 60*sec, 51*sec)
	e.advance(2 * time.Minute)
	e.adjust("c", &d, 0)
	e.takeN("c", p, 10)
	e.adjust("c", &d, 100)
	e.wantSmooth("units added later count in full beside others", e.takeN("c", p, 1), limited, 0, 60*sec, 51*sec)
	e.advance(60 * sec)
	e.adjust("c", &d, 130)
	e.wantSmooth("also of a charge that costs more than the limit", e.takeN("c", p, 1), limited, 0, 30*sec, 21*sec)
	d = e.takeN("f", p, 1)
	e.adjust("f", &d, 60)
	e.advance(-10 * sec)
	e.adjust("f", &d, 50)
	e.wantSmooth("given back of the limit after the clock stepped back", e.takeN("f", p, 1), limited, 0, 50*sec, 41*sec)
	d = engine.Uncounted(p, 0, e.now)
	d.States[0].Reset, d.Receipt.Others[0] = 0, fixedwindow.Window{Length: 1<<31 + 60, End: math.MaxUint32}
	e.adjust("e", &d, 5)
	e.want("no fixed window is so long", e.takeN("e", p, 10), allowed, 0)
	d = e.takeN("d", p, 1)
	e.advance(8 * sec)
	e.adjust("d", &d, 11)
	e.wantSmooth("of a full bucket they are charged now", e.takeN("d", p, 1), limited, 0, 10*sec, sec)

	p = plan(ratelimit.PerMinute(60).Smooth(20))
	first := e.takeN("h", p, 10)
	e.advance(5 * sec)
	e.takeN("h", p, 10)
	e.adjust("h", &first, 5)
	e.adjust("h", &first, 0)
	e.wantSmooth("5 of 10 units have come back, in whatever parts the rest is given back", e.takeN("h", p, 1), allowed, 9, 11*sec, 0)
	e.testBursts(p)
	large := plan(ratelimit.PerMinute(60).Smooth(60))
	d = e.takeN("j", large, 50)
	e.advance(8 * sec)
	for d.Cost > 8 {
		e.adjust("j", &d, d.Cost-1)
	}
	e.wantSmooth("no more parts of a charge are given back than are remembered", e.takeN("j", large, 1), allowed, 49, 11*sec, 0)

	if l, ok := e.engine.Limiter.(interface {
		Reset(ctx context.Context, subject string) error
	}); ok {
		for range 2 {
			d = e.takeN("i", p, 20)
			e.adjust("i", &d, 0)
			e.want("a subject that was not known gets back all", e.takeN("i", p, 20), allowed, 0)
			if err := l.Reset(context.Background(), "i"); err != nil {
				e.Fatal(err)
			}
		}
	}
}

// testBursts tests that all units of a burst are given back, in any order, but those that come back
// by themselves meanwhile.
func (e *engineTest) testBursts(p *ratelimit.Plan) {
	for name, place := range map[string]func(i int) int{
		"the first first": func(i int) int { return i },
		"the last first":  func(i int) int { return 19 - i },
		"mixed":           func(i int) int { return i * 7 % 20 },
	} {
		var charges [20]ratelimit.Decision
		for i := range charges {
			charges[i] = e.takeN(name, p, 1)
		}
		e.advance(1500 * time.Millisecond)
		for i := range charges {
			e.adjust(name, &charges[place(i)], 0)
		}
		e.wantSmooth(name, e.takeN(name, p, 20), allowed, 0, 20*time.Second, 0)
	}
}

func testAdjustElsewhere(e *engineTest) {
	e.adjuster()
	p := ratelimit.MustPlan("charged elsewhere", penalty(), ratelimit.PerMinute(10), ratelimit.PerDay(100))
	charged := func(at time.Time) *ratelimit.Decision {
		d := engine.Uncounted(p, 0, at)
		return &d
	}
	left := func(what string, d ratelimit.Decision, minute, day int64) {
		e.Helper()
		if d.States[0].Remaining != minute || d.States[1].Remaining != day {
			e.Errorf("%s: %d of the minute and %d of the day are left, want %d and %d",
				what, d.States[0].Remaining, d.States[1].Remaining, minute, day)
		}
	}
	e.adjust("a", charged(e.now), 3)
	left("a subject never seen", e.take(p), 6, 96)
	e.adjust("a", charged(e.now.Add(-time.Minute)), 5)
	left("the minute is over, the day is not", e.take(p), 5, 90)
	day := charged(e.now)
	day.States[0].Reset = 0
	e.adjust("a", day, 7)
	left("the day alone", e.take(p), 4, 82)
	e.adjust("a", charged(e.now), 5)
	d := e.take(p)
	left("more than fits", d, 0, 77)
	e.want("no request of the minute is left", d, limited, 0)
	if !e.gaps.NoPenalties && d.StrikesLeft != penalty().Strikes {
		e.Errorf("adding usage over the limit left %d strikes, want all %d", d.StrikesLeft, penalty().Strikes)
	}
	e.advance(time.Minute)
	e.adjust("a", charged(e.now), 3)
	next := e.now.Truncate(time.Minute).Add(time.Minute)
	e.adjust("a", charged(next), 4)
	d = e.take(p)
	left("the charge is ahead, in the next minute", d, 2, 69)
	if want := next.Add(time.Minute).Unix(); d.States[0].Reset != want {
		e.Errorf("the charge is ahead, in the next minute: the window ends at %d, want %d", d.States[0].Reset, want)
	}
	e.adjust("a", charged(e.now.Add(time.Hour)), 1)
	if d = e.take(p); d.States[0].Reset > e.now.Add(2*time.Minute).Unix() {
		e.Errorf("the charge is an hour ahead: the window ends at %d, more than a window ahead", d.States[0].Reset)
	}
	ended := e.now.Truncate(time.Minute).Add(5 * time.Minute)
	e.advance(ended.Sub(e.now))
	day = charged(ended.Add(-time.Microsecond))
	day.States[1].Reset = 0
	e.adjust("a", day, 9)
	left("the minute of the charge ends now", e.take(p), 9, 66)
	e.advance(48 * time.Hour)
	e.adjust("a", charged(time.Date(2105, time.December, 31, 23, 59, 59, 0, time.UTC)), 2)
	left("the charge is decades ahead", e.take(p), 7, 97)
	for _, reset := range []int64{-1, math.MinInt64, math.MaxInt64} {
		d := charged(e.now)
		d.Time, d.States[0].Reset, d.States[1].Reset = reset, -1, math.MinInt64
		d.Receipt.Others[0].End = math.MaxUint32
		e.adjust("a", d, 4)
	}
	left("no window ends then", e.take(p), 6, 96)
}

func testAdjustOnce(e *engineTest) {
	adjuster := e.adjuster()
	if !e.engine.Remembers {
		e.Skip("skipped: the engine remembers no ids")
	}
	p := plan(ratelimit.Quota{Limit: 1000, Window: fixedwindow.MaxLength})
	now := time.Unix(0, e.take(p).Time)
	add := func(subject, id string) {
		if err := engine.AddUsage(context.Background(), adjuster, subject, p, 10, now, id); err != nil {
			e.Fatal(err)
		}
	}
	for _, id := range []string{"one", "one", "two", "one", "two", "", ""} {
		add("a", id)
	}
	add("b", "one")
	e.want("two ids, and two calls without one", e.takeN("a", p, 1), allowed, 958)
	e.want("another subject has ids of its own", e.takeN("b", p, 1), allowed, 989)
}
