package memory_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A ban that an admission has found forgiven stays forgiven if the clock steps back: the
// record of it expires between the ends of windows, where no admission takes the lock.
func TestForgivenBanStaysForgiven(t *testing.T) {
	penalty := ratelimit.Penalty{Strikes: 1, Ban: 10 * time.Second, Growth: 2, Max: time.Hour, Forgive: time.Minute}
	for _, plan := range []*ratelimit.Plan{
		ratelimit.MustPlan("window", penalty, seconds(4, 60)),
		ratelimit.MustPlan("smooth", penalty, seconds(60, 60).Smooth(4)),
		ratelimit.MustPlan("two", penalty, seconds(4, 60), seconds(1000, 120)),
	} {
		clock := enginetest.NewClock(noon)
		l, model := newLimiter(t, memory.Options{Now: clock.Now}), enginetest.NewModel(clock.Now)
		for i, step := range []struct {
			at   time.Duration
			cost int64
		}{
			{50 * time.Second, 4}, {51 * time.Second, 4}, {51 * time.Second, 4}, // a ban until 61 s, forgiven at 121 s
			{120 * time.Second, 1}, {121 * time.Second, 1}, // the second takes no lock
			{120 * time.Second, 4}, {120 * time.Second, 4}, // another first ban
		} {
			clock.Set(noon.Add(step.at))
			want := take1(t, model, "a", plan, step.cost)
			if diff := diffDecisions(want, take1(t, l, "a", plan, step.cost)); diff != "" {
				t.Fatalf("under %v the engine (+) and the model (-) differ at step %d:\n%s", plan, i+1, diff)
			}
		}
	}
}
