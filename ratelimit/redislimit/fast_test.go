package redislimit_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// The first parts of the scripts, which cost the server a fraction of the second ones,
// decide all requests but the rare ones, as the model does: alone and in groups, whatever
// quotas a plan has.
func TestFastPartDecides(t *testing.T) {
	penalty := ratelimit.Penalty{Strikes: 3, Grace: time.Second, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Minute}
	plan := func(quotas ...ratelimit.Quota) *ratelimit.Plan { return ratelimit.MustPlan("p", penalty, quotas...) }
	two := ratelimit.Quota{Limit: 2, Window: 100 * time.Second}
	minute, day, month := ratelimit.PerMinute(60), ratelimit.PerDay(60).In(time.UTC), ratelimit.PerMonth(60).From(17)
	others := []*ratelimit.Plan{
		ratelimit.MustPlan("fixed", penalty, ratelimit.PerMinute(60), ratelimit.PerHour(1000)),
		ratelimit.MustPlan("smooth", penalty, ratelimit.PerHour(1000).Smooth(1000), ratelimit.PerMonth(1000)),
		ratelimit.MustPlan("full after each request", penalty, ratelimit.PerSecond(1000).Smooth(1000), ratelimit.PerMinute(100)),
	}
	for name, p := range map[string]*ratelimit.Plan{
		"fixed windows":            plan(two, minute),
		"a month":                  plan(two, month),
		"a smooth quota":           plan(two.Smooth(2)),
		"one without a burst":      plan(two.Smooth(1)), // each request that is admitted uses all of it
		"one beside a window":      plan(two.Smooth(2), minute),
		"one beside a month":       plan(two.Smooth(2), month),
		"two beside two calendars": plan(two.Smooth(2), ratelimit.PerHour(60).Smooth(20), day, month),
		"a day in a zone":          plan(ratelimit.PerHour(20).Smooth(20), ratelimit.PerDay(2).In(time.UTC), month),
	} {
		t.Run(name, func(t *testing.T) {
			both := newPair(t, time.Date(2026, time.March, 1, 12, 0, 30, 250_000_000, time.UTC))
			both.take("to learn the time", others[1])
			for _, subject := range []string{"banned", "banned, with fixed", "banned, with smooth", "banned, with full after each request"} {
				both.agree("a ban", func(l enginetest.Model) (any, error) { return nil, l.Ban(ctx, subject, time.Minute, "") })
			}
			redislimit.OnlyFastPart(t)
			for _, step := range []struct {
				subject string
				at      time.Duration
			}{
				{"a", 0}, {"a", 1 * time.Second},
				{"a", 2 * time.Second}, {"a", 4 * time.Second}, // within the grace, and a strike
				{"banned", 5 * time.Second},
				{"a", 6 * time.Second},
				{"b", 40 * time.Second},
				{"a", 80 * time.Second}, // the fixed window is over; the bucket is not full
				{"a", 300 * time.Second},
			} {
				both.set(step.at)
				both.take(step.subject, p)
				for _, other := range others {
					both.takeAll(ratelimit.Charge{Subject: step.subject + ", with " + other.Name(), Plan: p, Cost: 1},
						ratelimit.Charge{Subject: other.Name(), Plan: other, Cost: 1})
				}
			}
		})
	}
}
