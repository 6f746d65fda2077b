package enginetest

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// calendarPlans are those of histories about calendar windows. They differ in billing days
// and in zones, and change between them at any time.
var calendarPlans = func() []*ratelimit.Plan {
	p := ratelimit.Penalty{
		Strikes: 2, Grace: 2 * time.Second, Decay: 5 * time.Second,
		Ban: 10 * time.Second, Growth: 3, Max: 2 * time.Minute, Forgive: time.Minute,
	}
	berlin, tokyo, havana := zone("Europe/Berlin"), zone("Asia/Tokyo"), zone("America/Havana")
	return []*ratelimit.Plan{
		ratelimit.MustPlan("month", p, ratelimit.PerMonth(9)),
		ratelimit.MustPlan("minute and month", p, ratelimit.PerMinute(4), ratelimit.PerMonth(12)),
		ratelimit.MustPlan("billing", p, ratelimit.PerMinute(5), ratelimit.PerMonth(11).From(31)),
		ratelimit.MustPlan("billing in a zone", p, ratelimit.PerMonth(14).From(17).In(berlin)),
		ratelimit.MustPlan("day and month", p, ratelimit.PerDay(7).In(berlin), ratelimit.PerMonth(20).In(berlin)),
		ratelimit.MustPlan("day elsewhere", p, ratelimit.PerMinute(9), ratelimit.PerDay(8).In(tokyo)),
		ratelimit.MustPlan("midnight comes twice", p, ratelimit.PerDay(8).In(havana)),
		ratelimit.MustPlan("both days", ratelimit.Penalty{}, ratelimit.PerDay(9), ratelimit.PerDay(9).In(time.UTC),
			ratelimit.Quota{Limit: 9, Window: 36 * time.Hour}, ratelimit.PerMonth(15)),
		ratelimit.MustPlan("large", p, ratelimit.PerDay(ratelimit.MaxLimit).In(berlin), ratelimit.PerMonth(ratelimit.MaxLimit-1)),
	}
}()

// calendarStarts are where histories about calendar windows begin: shortly before the
// end of a month, of a leap day, of a year, and before changes of the clock.
var calendarStarts = []time.Time{
	start,
	date(2026, time.February, 28, 23, 58),
	date(2028, time.February, 28, 23, 30),
	date(2026, time.December, 31, 22, 50),
	date(2026, time.March, 28, 22, 30),
	date(2026, time.October, 25, 22, 30),
	date(2026, time.November, 1, 3, 30),
	date(2026, time.January, 30, 23, 0),
}

var historyPlans = func() []*ratelimit.Plan {
	p := ratelimit.Penalty{
		Strikes: 2, Grace: 2 * time.Second, Decay: 5 * time.Second,
		Ban: 10 * time.Second, Growth: 3, Max: 2 * time.Minute, Forgive: time.Minute,
	}
	hard := ratelimit.Penalty{Strikes: 1, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Hour}
	sec := func(limit int64, s int) ratelimit.Quota {
		return ratelimit.Quota{Limit: limit, Window: time.Duration(s) * time.Second}
	}
	return []*ratelimit.Plan{
		ratelimit.MustPlan("two", p, sec(3, 10), sec(9, 60)),
		ratelimit.MustPlan("two, larger", p, sec(5, 10), sec(20, 60)),
		ratelimit.MustPlan("one", hard, sec(4, 10)),
		ratelimit.MustPlan("four", ratelimit.Penalty{}, sec(3, 5), sec(5, 10), sec(12, 60), sec(30, 3600)),
		ratelimit.MustPlan("others", p, sec(4, 7), sec(6, 11), sec(40, 86400), sec(8, 13)),
		ratelimit.MustPlan("yet others", hard, sec(5, 3), sec(7, 17), sec(9, 19), sec(20, 600)),
		ratelimit.MustPlan("large", p, sec(ratelimit.MaxLimit, 10), sec(ratelimit.MaxLimit-1, 60)),
	}
}()
