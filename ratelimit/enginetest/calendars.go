package enginetest

import (
	"time"
	_ "time/tzdata" // the promises are the same where the system has no time zones

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// zone returns a time zone that the package time/tzdata has.
func zone(name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return loc
}

// set sets the clock.
func (e *engineTest) set(t time.Time) { e.advance(t.Sub(e.now)) }

func date(y int, m time.Month, d, hour, minute int) time.Time {
	return time.Date(y, m, d, hour, minute, 0, 0, time.UTC)
}

func testCalendars(e *engineTest) {
	for _, test := range []struct {
		name  string
		quota ratelimit.Quota
		ends  []time.Time
	}{
		{"months", ratelimit.PerMonth(2), []time.Time{
			date(2026, time.April, 1, 0, 0), date(2026, time.May, 1, 0, 0), date(2026, time.June, 1, 0, 0)}},
		{"months from 31", ratelimit.PerMonth(2).From(31), []time.Time{
			date(2026, time.March, 31, 0, 0), date(2026, time.April, 30, 0, 0), date(2026, time.May, 31, 0, 0)}},
		{"months from 17 in a zone", ratelimit.PerMonth(2).From(17).In(zone("Europe/Berlin")), []time.Time{
			date(2026, time.March, 16, 23, 0), date(2026, time.April, 16, 22, 0)}},
		{"days in a zone", ratelimit.PerDay(2).In(zone("Europe/Berlin")), []time.Time{
			date(2026, time.March, 1, 23, 0), date(2026, time.March, 2, 23, 0)}},
		{"days in UTC", ratelimit.PerDay(2).In(time.UTC), []time.Time{
			date(2026, time.March, 2, 0, 0), date(2026, time.March, 3, 0, 0)}},
		{"days at a change of the clock", ratelimit.PerDay(2).In(zone("America/New_York")), []time.Time{
			date(2026, time.March, 2, 5, 0), date(2026, time.March, 3, 5, 0), date(2026, time.March, 4, 5, 0),
			date(2026, time.March, 5, 5, 0), date(2026, time.March, 6, 5, 0), date(2026, time.March, 7, 5, 0),
			date(2026, time.March, 8, 5, 0), date(2026, time.March, 9, 4, 0), date(2026, time.March, 10, 4, 0)}},
	} {
		e.set(start)
		e.calendar(test.name, plan(test.quota), test.ends)
	}
	e.set(date(2028, time.February, 28, 23, 59))
	e.calendar("February of a leap year", plan(ratelimit.PerMonth(2)), []time.Time{date(2028, time.March, 1, 0, 0)})
	e.calendar("months from 29 in a leap year", plan(ratelimit.PerMonth(2).From(29)), []time.Time{
		date(2028, time.March, 29, 0, 0), date(2028, time.April, 29, 0, 0)})
}

// calendar uses up windows of two units that have the given ends.
func (e *engineTest) calendar(name string, p *ratelimit.Plan, ends []time.Time) {
	e.Helper()
	for _, end := range ends {
		for left := range 2 {
			d := e.takeN(name, p, 1)
			e.want(name+": within the window", d, allowed, int64(1-left))
			if d.Reset() != end.Unix() {
				e.Fatalf("%s: at %v the window ends at %v, want %v", name, e.now, time.Unix(d.Reset(), 0).UTC(), end)
			}
		}
		e.set(end.Add(-time.Millisecond))
		d := e.takeN(name, p, 1)
		e.want(name+": a millisecond before the end", d, limited, 0)
		if d.RetryAfter != time.Millisecond {
			e.Errorf("%s: a millisecond before the end the client must wait for %v", name, d.RetryAfter)
		}
		e.set(end)
	}
}

func testCalendarChanges(e *engineTest) {
	reset := func(step string, d ratelimit.Decision, want time.Time) {
		e.Helper()
		if d.Reset() != want.Unix() {
			e.Errorf("%s: the window ends at %v, want %v", step, time.Unix(d.Reset(), 0).UTC(), want)
		}
	}
	month, billing := plan(ratelimit.PerMonth(5)), plan(ratelimit.PerMonth(4).From(17))
	april := date(2026, time.April, 1, 0, 0)
	e.want("in March", e.takeN("a", month, 1), allowed, 4)
	d := e.takeN("a", billing, 1)
	e.want("another billing day keeps the usage", d, allowed, 2)
	reset("another billing day keeps the end", d, april)
	e.set(date(2026, time.March, 18, 0, 0))
	d = e.takeN("a", billing, 1)
	e.want("the new billing day begins no window while the old one is open", d, allowed, 1)
	reset("after the new billing day", d, april)
	e.set(april)
	d = e.takeN("a", billing, 1)
	e.want("when the window ends", d, allowed, 3)
	reset("the next window ends on the billing day", d, date(2026, time.April, 17, 0, 0))
	reset("and keeps that end", e.takeN("a", month, 1), date(2026, time.April, 17, 0, 0))

	berlin, tokyo := plan(ratelimit.PerDay(5).In(zone("Europe/Berlin"))), plan(ratelimit.PerDay(5).In(zone("Asia/Tokyo")))
	midnight := date(2026, time.April, 1, 22, 0)
	reset("in Berlin", e.takeN("b", berlin, 1), midnight)
	d = e.takeN("b", tokyo, 1)
	e.want("a move keeps the usage", d, allowed, 3)
	reset("a move keeps the end", d, midnight)
	e.set(date(2026, time.April, 1, 15, 0))
	e.want("midnight in Tokyo begins no day while the old one is open", e.takeN("b", tokyo, 1), allowed, 2)
	e.set(midnight)
	d = e.takeN("b", tokyo, 1)
	e.want("the next day", d, allowed, 4)
	reset("the next day ends in Tokyo", d, date(2026, time.April, 2, 15, 0))
	if e.gaps.OneQuota {
		return
	}
	both := plan(ratelimit.PerDay(9), ratelimit.PerDay(9).In(time.UTC), ratelimit.Quota{Limit: 9, Window: 36 * time.Hour}, ratelimit.PerMonth(9))
	d = e.takeN("c", both, 1)
	for i, want := range []time.Time{
		date(2026, time.April, 2, 0, 0), date(2026, time.April, 3, 0, 0), date(2026, time.April, 2, 0, 0), date(2026, time.May, 1, 0, 0),
	} {
		if d.States[i].Remaining != 8 || d.States[i].Reset != want.Unix() && i != 1 {
			e.Errorf("%v beside windows of fixed lengths: %+v, want 8 until %v", engine.Of(both).Quota(i), d.States[i], want)
		}
	}
	d = e.takeN("c", plan(ratelimit.PerDay(9)), 3)
	e.want("the day of the clock in UTC", d, allowed, 5)
}
