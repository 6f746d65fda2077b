package redislimit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

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
			m, c := mini(t)
			clock := enginetest.NewClock(start)
			l, model := newLimiter(t, c), enginetest.NewModel(clock.Now)
			at := func(after time.Duration) {
				m.SetTime(start.Add(after))
				clock.Set(start.Add(after))
			}
			charges := []ratelimit.Charge{{Subject: "refused", Plan: refused, Cost: 1}, {Subject: "a", Plan: plan, Cost: 1}}
			both := func(after time.Duration) {
				t.Helper()
				at(after)
				want, got := make([]ratelimit.Decision, 2), make([]ratelimit.Decision, 2)
				if err := model.TakeAll(ctx, charges, want); err != nil {
					t.Fatal(err)
				}
				if err := l.TakeAll(ctx, charges, got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b })); diff != "" {
					t.Fatalf("after %v: the engine (+) and the model (-) differ:\n%s", after, diff)
				}
			}
			both(0)
			at(2 * time.Second)
			for range 3 { // the last one is a strike at the latest
				for _, e := range []counter{l, model} {
					if _, err := e.Take(ctx, "a", plan, 1); err != nil {
						t.Fatal(err)
					}
				}
			}
			redislimit.OnlyFastPart(t)
			for _, after := range []time.Duration{31, 32, 40, 59, 60, 61, 62, 90, 600} {
				both(after*time.Second - 250*time.Millisecond)
				both(after * time.Second)
			}
		})
	}
}
