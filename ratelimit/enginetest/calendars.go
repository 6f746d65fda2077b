package enginetest

import (
	"strings"
	"time"
	_ "time/tzdata" // the promises are the same where the system has no time zones

	"github.com/animalstore/gatehouse/ratelimit"
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

// testCalendars uses up windows of two units that have the given ends, in UTC.
func testCalendars(e *engineTest) {
	newYork := zone("America/New_York")
	leapDay := date(2028, time.February, 28, 23, 59)
	for _, test := range []struct {
		name  string
		start time.Time
		quota ratelimit.Quota
		ends  string
	}{
		{"months", start, ratelimit.PerMonth(2), "2026-04-01T00 2026-05-01T00 2026-06-01T00"},
		{"months from 31", start, ratelimit.PerMonth(2).From(31), "2026-03-31T00 2026-04-30T00 2026-05-31T00"},
		{"months from 17 in a zone", start, ratelimit.PerMonth(2).From(17).In(berlin), "2026-03-16T23 2026-04-16T22"},
		{"days in a zone", start, ratelimit.PerDay(2).In(berlin), "2026-03-01T23 2026-03-02T23"},
		{"days in UTC", start, ratelimit.PerDay(2).In(time.UTC), "2026-03-02T00 2026-03-03T00"},
		{"days at a change of the clock", start, ratelimit.PerDay(2).In(newYork), "2026-03-02T05 2026-03-03T05 2026-03-04T05 " +
			"2026-03-05T05 2026-03-06T05 2026-03-07T05 2026-03-08T05 2026-03-09T04 2026-03-10T04"},
		{"February of a leap year", leapDay, ratelimit.PerMonth(2), "2028-03-01T00"},
		{"months from 29 in a leap year", leapDay.AddDate(0, 0, 2), ratelimit.PerMonth(2).From(29), "2028-03-29T00 2028-04-29T00"},
	} {
		e.set(test.start)
		for text := range strings.FieldsSeq(test.ends) {
			end, err := time.Parse("2006-01-02T15", text)
			if err != nil {
				e.Fatal(err)
			}
			for left := range int64(2) {
				e.wantEnd(test.name+": within the window", e.takeN(test.name, plan(test.quota), 1), 1-left, end)
			}
			e.set(end.Add(-time.Millisecond))
			d := e.takeN(test.name, plan(test.quota), 1)
			e.want(test.name+": a millisecond before the end", d, limited, 0)
			if d.RetryAfter != time.Millisecond {
				e.Errorf("%s: a millisecond before the end the client must wait for %v", test.name, d.RetryAfter)
			}
			e.set(end)
		}
	}
}

// wantEnd fails unless the request is allowed, with so many units left until the window ends.
func (e *engineTest) wantEnd(step string, d ratelimit.Decision, left int64, end time.Time) {
	e.Helper()
	e.want(step, d, allowed, left)
	if d.Reset() != end.Unix() {
		e.Fatalf("%s: at %v the window ends at %v, want %v", step, e.now, time.Unix(d.Reset(), 0).UTC(), end)
	}
}
