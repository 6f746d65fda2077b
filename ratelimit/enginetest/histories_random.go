package enginetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// randomStarts are where histories of random plans begin: those of calendar windows, and
// others before and after which times have another number of bits.
var randomStarts = append(slices.Clone(calendarStarts),
	date(1971, time.December, 31, 23, 58),
	date(2011, time.December, 30, 9, 58), // Apia has no 30 December
	date(2018, time.November, 4, 2, 58),  // São Paulo skips midnight
	date(2038, time.January, 19, 3, 13),
	date(2100, time.February, 28, 23, 58),
)

var randomZones = []*time.Location{
	time.UTC, zone("Europe/Berlin"), zone("America/Havana"), zone("America/Sao_Paulo"), zone("Australia/Lord_Howe"), zone("Pacific/Apia"),
}

func oneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// randomPlans returns plans of any quotas: fixed windows, calendar windows and smooth
// quotas beside each other, with limits from one to the largest.
func randomPlans(r *rand.Rand) []*ratelimit.Plan {
	var plans []*ratelimit.Plan
	for len(plans) < 5 {
		quotas := make([]ratelimit.Quota, 1+r.IntN(ratelimit.MaxQuotas))
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
		Limit:  oneOf[int64](r, 1, 2, 3, 4, 7, 11, 20, 100, 333_333, ratelimit.MaxLimit-1, ratelimit.MaxLimit),
		Window: oneOf(r, 1, 3, 10, 60, 61, 3600, 86_400, ratelimit.MaxWindow/time.Second) * time.Second,
	}
	switch r.IntN(6) {
	case 0:
		return ratelimit.PerDay(q.Limit).In(oneOf(r, randomZones...))
	case 1:
		return ratelimit.PerMonth(q.Limit).From(oneOf(r, 1, 15, 29, 31)).In(oneOf(r, randomZones...))
	case 2, 3:
		q.Limit = min(q.Limit, int64(q.Window/time.Second)*1_000_000)
		return q.Smooth(oneOf(r, 1, q.Limit, 1+r.Int64N(q.Limit)))
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
		Decay:   oneOf(r, time.Second, 5*time.Second, ratelimit.MaxWindow),
		Ban:     oneOf(r, time.Second, 10*time.Second, ratelimit.MaxWindow),
		Growth:  oneOf(r, 1, 3, 100),
		Forgive: oneOf(r, time.Second, time.Minute, ratelimit.MaxWindow),
	}
	p.Max = oneOf(r, p.Ban, ratelimit.MaxWindow)
	return p
}

// mostOf returns the most that a request under a plan can cost.
func mostOf(plan *ratelimit.Plan) int64 {
	most := int64(ratelimit.MaxLimit)
	for _, q := range plan.Quotas() {
		if most = min(most, q.Limit); q.Burst() > 0 {
			most = min(most, q.Burst())
		}
	}
	return most
}
