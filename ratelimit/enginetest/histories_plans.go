package enginetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
	_ "time/tzdata" // the promises are the same where the system has no time zones

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var historyPenalty = ratelimit.Penalty{
	Strikes: 3, Grace: 2 * time.Second, Decay: 5 * time.Second,
	Ban: 10 * time.Second, Growth: 3, Max: 2 * time.Minute, Forgive: time.Minute,
}

var hardPenalty = ratelimit.Penalty{Strikes: 1, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Hour}

var berlin, tokyo, havana = zone("Europe/Berlin"), zone("Asia/Tokyo"), zone("America/Havana")

// zone returns a time zone that the package time/tzdata has.
func zone(name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return loc
}

func date(y int, m time.Month, d, hour, minute int) time.Time {
	return time.Date(y, m, d, hour, minute, 0, 0, time.UTC)
}

func sec(limit int64, s int) ratelimit.Quota {
	return ratelimit.Quota{Limit: limit, Window: time.Duration(s) * time.Second}
}

// calendarPlans are for histories about calendar windows. They differ in billing days
// and in zones, and change between them at any time.
var calendarPlans = []*ratelimit.Plan{
	ratelimit.MustPlan("month", historyPenalty, ratelimit.PerMonth(9)),
	ratelimit.MustPlan("minute and month", historyPenalty, ratelimit.PerMinute(4), ratelimit.PerMonth(12)),
	ratelimit.MustPlan("billing", historyPenalty, ratelimit.PerMinute(5), ratelimit.PerMonth(11).From(31)),
	ratelimit.MustPlan("billing in a zone", historyPenalty, ratelimit.PerMonth(14).From(17).In(berlin)),
	ratelimit.MustPlan("day and month", historyPenalty, ratelimit.PerDay(7).In(berlin), ratelimit.PerMonth(20).In(berlin)),
	ratelimit.MustPlan("day elsewhere", historyPenalty, ratelimit.PerMinute(9), ratelimit.PerDay(8).In(tokyo)),
	ratelimit.MustPlan("midnight comes twice", historyPenalty, ratelimit.PerDay(8).In(havana)),
	ratelimit.MustPlan("both days", ratelimit.Penalty{}, ratelimit.PerDay(9), ratelimit.PerDay(9).In(time.UTC),
		ratelimit.Quota{Limit: 9, Window: 36 * time.Hour}, ratelimit.PerMonth(15)),
	ratelimit.MustPlan("soft month", historyPenalty, ratelimit.PerMinute(4), ratelimit.PerMonth(6).From(17).Soft()),
	ratelimit.MustPlan("large", historyPenalty, ratelimit.PerDay(fixedwindow.MaxUnits).In(berlin), ratelimit.PerMonth(fixedwindow.MaxUnits-1)),
}

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

var historyPlans = []*ratelimit.Plan{
	ratelimit.MustPlan("two", historyPenalty, sec(3, 10), sec(9, 60)),
	ratelimit.MustPlan("three, larger", historyPenalty, sec(5, 10), sec(8, 20), sec(20, 60)),
	ratelimit.MustPlan("one", hardPenalty, sec(4, 10)),
	ratelimit.MustPlan("four", ratelimit.Penalty{}, sec(3, 5), sec(5, 10), sec(12, 60), sec(30, 3600)),
	ratelimit.MustPlan("others", historyPenalty, sec(4, 7), sec(6, 11), sec(40, 86400), sec(8, 13)),
	ratelimit.MustPlan("yet others", hardPenalty, sec(5, 3), sec(7, 17), sec(9, 19), sec(20, 600)),
	ratelimit.MustPlan("soft", historyPenalty, sec(4, 10), sec(3, 60).Soft()),
	ratelimit.MustPlan("only soft", historyPenalty, sec(3, 10).Soft()),
	ratelimit.MustPlan("large", historyPenalty, sec(fixedwindow.MaxUnits, 10), sec(fixedwindow.MaxUnits-1, 60)),
	ratelimit.MustPlan("32 bits", historyPenalty, sec(1<<32-2, 7), sec(1<<32-1, 10), sec(1<<32, 60), sec(1<<33, 3600)),
}

// smoothPlans are for histories about smooth quotas, some beside fixed windows of the
// same length.
var smoothPlans = []*ratelimit.Plan{
	ratelimit.MustPlan("smooth", historyPenalty, sec(7, 10).Smooth(4)),
	ratelimit.MustPlan("both", historyPenalty, sec(9, 10), sec(11, 10).Smooth(3), sec(40, 60)),
	ratelimit.MustPlan("slower", historyPenalty, sec(3, 10).Smooth(2), sec(13, 60).Smooth(13)),
	ratelimit.MustPlan("fixed", historyPenalty, sec(5, 10), sec(30, 60)),
	ratelimit.MustPlan("four", ratelimit.Penalty{}, sec(6, 3).Smooth(3), sec(9, 7).Smooth(9), sec(12, 11).Smooth(4), sec(90, 600).Smooth(9)),
	ratelimit.MustPlan("others", historyPenalty, sec(6, 4).Smooth(3), sec(9, 8).Smooth(9), sec(6, 4), sec(9, 8)),
	ratelimit.MustPlan("yet others", historyPenalty, sec(6, 13).Smooth(3), sec(9, 17).Smooth(9), sec(6, 13), sec(9, 17)),
	ratelimit.MustPlan("large", historyPenalty, sec(1<<33, 10_000).Smooth(1<<33), sec(9_999_999, 10).Smooth(9_999_999)),
	ratelimit.MustPlan("large beside fixed", historyPenalty, sec(1<<33, 10_000).Smooth(1<<33), sec(1<<34, 10), sec(1<<34, 60)),
}

// randomStarts are where histories of random plans begin: those of calendar windows, and
// others before and after which times have another number of bits.
var randomStarts = append(slices.Clone(calendarStarts),
	date(1970, time.January, 1, 0, 1),
	date(1971, time.December, 31, 23, 58),
	date(2011, time.December, 30, 9, 58), // Apia has no 30 December
	date(2018, time.November, 4, 2, 58),  // São Paulo skips midnight
	date(2038, time.January, 19, 3, 13),
	date(2100, time.February, 28, 23, 58),
)

var randomZones = []*time.Location{
	time.UTC, berlin, havana, zone("America/Sao_Paulo"), zone("Australia/Lord_Howe"), zone("Pacific/Apia"),
}

func oneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// randomPlans returns plans of any quotas: fixed windows, calendar windows and smooth
// quotas beside each other, with limits from one to the largest.
func randomPlans(r *rand.Rand) []*ratelimit.Plan {
	var plans []*ratelimit.Plan
	for len(plans) < 5 {
		quotas := make([]ratelimit.Quota, 1+r.IntN(maxQuotas))
		for i := range quotas {
			quotas[i] = randomQuota(r)
		}
		name := fmt.Sprint("random ", len(plans))
		if plan, err := ratelimit.NewPlan(name, randomPenalty(r), quotas...); err == nil { // each window once
			plans = append(plans, plan)
		}
	}
	return plans
}

func randomQuota(r *rand.Rand) ratelimit.Quota {
	q := ratelimit.Quota{
		Limit:  oneOf[int64](r, 1, 2, 3, 4, 7, 11, 20, 100, 333_333, 1<<32-1, 1<<32, 1<<34, fixedwindow.MaxUnits-1, fixedwindow.MaxUnits),
		Window: oneOf(r, 1, 3, 10, 60, 61, 3600, 86_400, fixedwindow.MaxLength/time.Second) * time.Second,
	}
	switch r.IntN(6) {
	case 0:
		return ratelimit.PerDay(q.Limit).In(oneOf(r, randomZones...))
	case 1:
		return ratelimit.PerMonth(q.Limit).From(oneOf(r, 1, 15, 29, 31)).In(oneOf(r, randomZones...))
	case 2, 3:
		q.Limit = min(q.Limit, int64(q.Window/time.Second)*1_000_000)
		return q.Smooth(oneOf(r, 1, q.Limit, 1+r.Int64N(q.Limit)))
	case 4:
		return q.Soft()
	}
	return q
}

func randomPenalty(r *rand.Rand) ratelimit.Penalty {
	if r.IntN(4) == 0 {
		return ratelimit.Penalty{}
	}
	p := ratelimit.Penalty{
		Strikes: oneOf(r, 1, 2, 5, 10_000),
		Grace:   oneOf(r, 0, time.Millisecond, 2*time.Second, time.Hour),
		Decay:   oneOf(r, time.Second, 5*time.Second, fixedwindow.MaxLength),
		Ban:     oneOf(r, time.Second, 10*time.Second, fixedwindow.MaxLength),
		Growth:  oneOf(r, 1, 3, 100),
		Forgive: oneOf(r, time.Second, time.Minute, fixedwindow.MaxLength),
	}
	p.Max = oneOf(r, p.Ban, fixedwindow.MaxLength)
	return p
}

// mostOf returns the most that a request under a plan can cost.
func mostOf(plan *ratelimit.Plan) int64 {
	most := int64(fixedwindow.MaxUnits)
	for i, q := range plan.Quotas() {
		if most = min(most, engine.Of(plan).Limit(i)); q.Burst() > 0 {
			most = min(most, q.Burst())
		}
	}
	return most
}

func isCalendar(plan *ratelimit.Plan) bool {
	return slices.ContainsFunc(plan.Quotas(), func(q ratelimit.Quota) bool { return fixedwindow.IsCalendar(q.Window) })
}
