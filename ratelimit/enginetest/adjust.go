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

// used fails unless subject a has used so many units of the plan's quotas, which has room.
func (e *engineTest) used(step string, p *ratelimit.Plan, want ...int64) {
	e.Helper()
	d := e.takeN("a", p, 1)
	for i, n := range want {
		if used := engine.Of(p).Quota(i).Limit - d.States[i].Remaining - 1; !d.Allowed() || used != n {
			e.Fatalf("%s: the request is %v, and %d units of %v were used, want %d", step, d.Outcome, used, engine.Of(p).Quota(i), n)
		}
	}
	e.adjust("a", &d, 0)
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
	e.used("settled up under a plan without a day", day, 100)
	e.takeN("a", hour, 7)
	e.adjust("a", &d, 30)
	e.used("the hour was opened after the charge", hour, 7)
	e.used("settled down", day, 97)
	e.advance(time.Minute)
	e.adjust("a", &d, 200)
	e.used("the minute of the charge is over", minute, 0)
	e.used("the hour was opened after it", hour, 7)
	e.used("its day is open", day, 267)
	e.adjust("a", &d, 0)
	e.used("refunded", day, 67)
	e.advance(-31 * time.Second) // into the minute before
	e.adjust("a", &d, 50)
	e.used("settled up after the clock stepped back", day, 117)
	e.adjust("a", &d, 20)
	e.used("and down", day, 87)
}

func testCalendarAdjust(e *engineTest) {
	e.adjuster()
	month, billing := plan(ratelimit.PerMonth(500)), plan(ratelimit.PerMonth(500).From(17))
	before := e.takeN("a", month, 3)
	after := e.takeN("a", billing, 1)
	e.adjust("a", &before, 5)
	e.used("a charge before the change of the billing day", billing, 6)
	e.adjust("a", &after, 0)
	e.used("a charge after it", month, 5)
	e.set(date(2026, time.April, 1, 0, 0))
	e.used("in April", billing, 0)
	e.adjust("a", &before, 100)
	e.used("what March was charged does not count in April", billing, 0)
	e.takeN("a", billing, 9)
	e.adjust("a", &before, 0)
	e.used("nor is it given back to April", billing, 9)

}

func testSmoothAdjust(e *engineTest) {
	e.adjuster()
	const sec = time.Second
	p := plan(ratelimit.PerMinute(60).Smooth(10))
	e.set(e.now.Truncate(sec))
	d := e.takeN("a", p, 10)
	e.adjust("a", &d, 0)
	e.wantSmooth("everything was given back", e.takeN("a", p, 9), allowed, 1, 9*sec, 0)
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
