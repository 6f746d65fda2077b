package memory

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

// A denial that ends within a second is the one by the exact time, although the time on
// the fast path is late: a client that waits for RetryAfter does not wait too long.
func TestLateTimeDelaysNoRetry(t *testing.T) {
	start := time.Date(2026, time.March, 1, 12, 0, 59, 0, time.UTC)
	harsh := ratelimit.Penalty{Strikes: 1, Ban: time.Second, Growth: 1, Max: time.Second, Forgive: time.Second}
	plan := func(penalty ratelimit.Penalty, quotas ...ratelimit.Quota) *ratelimit.Plan {
		return ratelimit.MustPlan("p", penalty, quotas...)
	}
	tenth, slow := ratelimit.PerSecond(10).Smooth(4), ratelimit.PerMinute(50).Smooth(1)
	minute, day := ratelimit.PerMinute(4), ratelimit.PerDay(100)
	roomy := plan(ratelimit.Penalty{}, ratelimit.PerDay(1000), ratelimit.PerSecond(1000).Smooth(900))
	for name, c := range map[string]struct {
		plan    *ratelimit.Plan
		cost    int64 // of the late request
		takes   int   // of one unit, before
		at      time.Duration
		late    time.Duration
		outcome ratelimit.Outcome
	}{
		"a smooth quota":                        {plan(ratelimit.Penalty{}, tenth), 1, 4, 80 * ms, 70 * ms, ratelimit.Limited},
		"a unit is back":                        {plan(ratelimit.Penalty{}, tenth), 1, 4, 101 * ms, 70 * ms, ratelimit.Allowed},
		"one unit of two is back":               {plan(ratelimit.Penalty{}, tenth), 2, 4, 130 * ms, 70 * ms, ratelimit.Limited},
		"two units of three are back":           {plan(ratelimit.Penalty{}, tenth), 3, 4, 299 * ms, 250 * ms, ratelimit.Limited},
		"a fixed window":                        {plan(ratelimit.Penalty{}, minute, day), 1, 4, 900 * ms, 500 * ms, ratelimit.Limited},
		"the fixed window is over":              {plan(ratelimit.Penalty{}, minute, day), 1, 4, 1000 * ms, 500 * ms, ratelimit.Allowed},
		"a smooth quota beside a window":        {plan(ratelimit.Penalty{}, tenth, minute, day), 1, 4, 900 * ms, 850 * ms, ratelimit.Limited},
		"its bucket is full":                    {plan(ratelimit.Penalty{}, tenth, minute, day), 1, 4, 500 * ms, 400 * ms, ratelimit.Limited},
		"the window ends before a unit is back": {plan(ratelimit.Penalty{}, slow, minute, day), 1, 1, 1100 * ms, 850 * ms, ratelimit.Limited},
		"within the grace":                      {plan(ratelimit.DefaultPenalty(), tenth, day), 1, 5, 50 * ms, 40 * ms, ratelimit.Limited},
		"banned":                                {plan(harsh, tenth, day), 1, 6, 900 * ms, 800 * ms, ratelimit.Banned},
		"the ban is over":                       {plan(harsh, tenth, day), 1, 6, 1000 * ms, 800 * ms, ratelimit.Allowed},
	} {
		for _, group := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", in a group"}[group], func(t *testing.T) {
				clock := enginetest.NewClock(start)
				l, model := internalLimiter(t, Options{Now: clock.Now}), enginetest.NewModel(clock.Now)
				take := func(cost int64) (want, got []ratelimit.Decision) {
					t.Helper()
					charges := []ratelimit.Charge{{Subject: "a", Plan: c.plan, Cost: cost}}
					if group {
						charges = append(charges, ratelimit.Charge{Subject: "b", Plan: roomy, Cost: 1})
					}
					want, got = make([]ratelimit.Decision, len(charges)), make([]ratelimit.Decision, len(charges))
					var err error
					if group {
						err = l.TakeAll(context.Background(), charges, got)
					} else {
						got[0], err = l.Take(context.Background(), "a", c.plan, cost)
					}
					if err != nil {
						t.Fatal(err)
					}
					if err := model.TakeAll(context.Background(), charges, want); err != nil {
						t.Fatal(err)
					}
					return want, got
				}
				for range c.takes {
					take(1)
				}
				clock.Set(start.Add(c.at))
				l.clock.coarseTime.Store(start.Add(c.at - c.late).UnixNano())
				want, got := take(c.cost)
				if want[0].Outcome != c.outcome {
					t.Errorf("the model decides %v, want %v", want[0].Outcome, c.outcome)
				}
				if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b })); diff != "" {
					t.Errorf("the engine with a late clock (+) and the model (-) differ:\n%s", diff)
				}
			})
		}
	}
}

const ms = time.Millisecond

// A group that a late time refuses for less than a second is decided by the exact time.
func TestLateTimeRefusesNoGroup(t *testing.T) {
	for _, quota := range []ratelimit.Quota{ratelimit.PerMinute(1), ratelimit.PerMinute(60).Smooth(1)} {
		clock := enginetest.NewClock(time.Date(2026, time.March, 1, 12, 0, 59, 0, time.UTC))
		l := internalLimiter(t, Options{Now: clock.Now})
		plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, quota)
		charges := []ratelimit.Charge{{Subject: "a", Plan: plan, Cost: 1}, {Subject: "b", Plan: plan, Cost: 1}}
		decisions := make([]ratelimit.Decision, 2)
		for i := range 2 {
			if i > 0 { // the timer is late
				l.clock.coarseTime.Store(clock.Now().Add(999 * time.Millisecond).UnixNano())
				clock.Set(clock.Now().Add(time.Second))
			}
			if err := l.TakeAll(context.Background(), charges, decisions); err != nil {
				t.Fatal(err)
			}
			for _, d := range decisions {
				if !d.Allowed() {
					t.Errorf("%v: request %d of a group: %+v, want allowed", quota, i, d)
				}
			}
		}
	}
}
