package cases

import (
	"slices"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// penalty bans at the second strike.
var penalty = ratelimit.Penalty{
	Strikes: 1, Ban: time.Minute, Growth: 2, Max: time.Hour, Forgive: time.Hour,
}

// patient strikes for nothing within two seconds of the first limited request.
var patient = func() ratelimit.Penalty {
	p := penalty
	p.Grace = 2 * time.Second
	return p
}()

var (
	hour     = ratelimit.MustPlan("hour", penalty, ratelimit.PerHour(20))
	day      = ratelimit.MustPlan("day", penalty, ratelimit.PerDay(20))
	two      = ratelimit.MustPlan("two", penalty, ratelimit.PerMinute(2), ratelimit.PerDay(4))
	other    = ratelimit.MustPlan("other", penalty, ratelimit.PerHour(3), ratelimit.Quota{Limit: 5, Window: 7 * 24 * time.Hour})
	wide     = ratelimit.MustPlan("wide", penalty, ratelimit.PerMinute(2), ratelimit.PerHour(3), ratelimit.PerDay(4))
	graceful = ratelimit.MustPlan("graceful", patient, ratelimit.PerMinute(2), ratelimit.PerDay(4))
	large    = ratelimit.MustPlan("large", penalty, ratelimit.PerMinute(10), ratelimit.PerDay(20))
)

// final is what every case that does not say otherwise asks after all: where the
// subject stands, and how its next two requests are decided.
func final(subject string, plans ...*ratelimit.Plan) (calls []call) {
	for _, plan := range plans {
		calls = append(calls, peek(subject, plan))
	}
	calls = append(calls, bans)
	for _, plan := range plans {
		calls = append(calls, take(subject, plan))
	}
	return append(calls, peek(subject, plans[0]))
}

func threads(calls ...[]call) [][]call { return calls }
func do(calls ...call) []call          { return calls }

// All returns the cases.
func All() []Case {
	return slices.Concat(takes(), others(), moves(), bound(), penalties(), groups(),
		smoothTakes(), smoothSwitches(), smoothDenials(), smoothPlaces(), smoothGroups())
}
