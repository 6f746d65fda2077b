package redislimit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		"one beside a window":      plan(two.Smooth(2), minute),
		"one beside a month":       plan(two.Smooth(2), month),
		"two beside two calendars": plan(two.Smooth(2), ratelimit.PerHour(60).Smooth(20), day, month),
		"a day in a zone":          plan(ratelimit.PerHour(20).Smooth(20), ratelimit.PerDay(2).In(time.UTC), month),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Date(2026, time.March, 1, 12, 0, 30, 250_000_000, time.UTC)
			m, c := mini(t)
			m.SetTime(start)
			clock := enginetest.NewClock(start)
			l, model := newLimiter(t, c), enginetest.NewModel(clock.Now)
			for _, e := range []counter{l, model} {
				if _, err := e.Take(ctx, "to learn the time", others[1], 1); err != nil {
					t.Fatal(err)
				}
				for _, subject := range []string{"banned", "banned, with fixed", "banned, with smooth", "banned, with full after each request"} {
					if err := e.Ban(ctx, subject, time.Minute); err != nil {
						t.Fatal(err)
					}
				}
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
				now := start.Add(step.at)
				m.SetTime(now)
				clock.Set(now)
				check := func(what string, want, got []ratelimit.Decision, errs ...error) {
					t.Helper()
					for _, err := range errs {
						if err != nil {
							t.Fatalf("%s after %v: %v", what, step.at, err)
						}
					}
					if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b })); diff != "" {
						t.Fatalf("%s after %v: the engine (+) and the model (-) differ:\n%s", what, step.at, diff)
					}
				}
				want, err := model.Take(ctx, step.subject, p, 1)
				got, err2 := l.Take(ctx, step.subject, p, 1)
				check(step.subject, []ratelimit.Decision{want}, []ratelimit.Decision{got}, err, err2)
				for _, other := range others {
					subject := step.subject + ", with " + other.Name()
					charges := []ratelimit.Charge{{Subject: subject, Plan: p, Cost: 1}, {Subject: other.Name(), Plan: other, Cost: 1}}
					want, got := make([]ratelimit.Decision, 2), make([]ratelimit.Decision, 2)
					err := model.TakeAll(ctx, charges, want)
					err2 := l.TakeAll(ctx, charges, got)
					check(subject, want, got, err, err2)
				}
			}
		})
	}
}
