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

// A clock that steps back makes no ban by hand longer, with a reason or without.
func TestBanByHandIsCut(t *testing.T) {
	p := newPair(t, time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC))
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerDay(60))
	for _, reason := range []string{"", "spam"} {
		p.set(0)
		p.take(reason+"a", plan)
		p.agree("a ban", func(l enginetest.Model) (any, error) { return nil, l.Ban(ctx, reason+"a", 10*time.Second, reason) })
		for _, at := range []time.Duration{0, -25, -20, -14} { // from -25s on it ends at -15s
			p.set(at * time.Second)
			p.take(reason+"a", plan)
		}
	}
}

// A subject that is not charged because another one is refused keeps in Redis what is over.
// A decision does not show that, from the second on in which it is over.
func TestSparedSubjectShowsNothingThatIsOver(t *testing.T) {
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	penalty := ratelimit.Penalty{Strikes: 9, Decay: 24 * time.Hour, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Minute}
	refused := ratelimit.MustPlan("refused", ratelimit.Penalty{}, ratelimit.PerDay(1))
	for name, plan := range map[string]*ratelimit.Plan{
		"fixed windows":              ratelimit.MustPlan("p", penalty, ratelimit.Quota{Limit: 2, Window: 30 * time.Second}, ratelimit.PerMinute(10)),
		"smooth quotas":              ratelimit.MustPlan("p", penalty, ratelimit.PerSecond(1).Smooth(1), ratelimit.PerMinute(2).Smooth(2)),
		"a smooth quota and a month": ratelimit.MustPlan("p", penalty, ratelimit.PerMinute(2).Smooth(2), ratelimit.PerMonth(10)),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, start)
			charges := []ratelimit.Charge{{Subject: "refused", Plan: refused, Cost: 1}, {Subject: "a", Plan: plan, Cost: 1}}
			p.takeAll(charges...)
			p.set(2 * time.Second)
			for range 3 { // the last one is a strike at the latest
				p.take("a", plan)
			}
			redislimit.OnlyFastPart(t)
			for _, after := range []time.Duration{31, 32, 40, 59, 60, 61, 62, 90, 600} {
				p.set(after*time.Second - 250*time.Millisecond)
				p.takeAll(charges...)
				p.set(after * time.Second)
				p.takeAll(charges...)
			}
		})
	}
}
