package redislimit_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// What was charged after the deadline of the caller is given back, to each subject, and to
// the windows of other plans too. What was refused is not.
func TestLateChargesAreGivenBack(t *testing.T) {
	m, c := mini(t)
	m.SetTime(time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC))
	day := ratelimit.MustPlan("day", ratelimit.Penalty{}, ratelimit.PerDay(100)) // of both, before
	a := ratelimit.Charge{Subject: "a", Plan: ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(6)), Cost: 2}
	b := ratelimit.Charge{Subject: "b", Plan: ratelimit.MustPlan("hour", ratelimit.Penalty{}, ratelimit.PerHour(100)), Cost: 5}
	for _, charges := range [][]ratelimit.Charge{{a}, {a, b}} { // of four, the limit admits three
		l := newLimiter(t, c)
		for _, charge := range charges {
			_, err := l.Take(ctx, charge.Subject, day, 40)
			must(t, err)
		}
		redislimit.TakeTooLate(l, charges...)
		for _, charge := range charges {
			for plan, want := range map[*ratelimit.Plan]int64{charge.Plan: charge.Cost, day: 40 + charge.Cost} {
				d, err := l.Peek(ctx, charge.Subject, plan)
				if n := engine.Of(plan).Quota(0).Limit - d.Remaining(); err != nil || n != want {
					t.Errorf("%d charges at once: %s has used %d units of %v, with error %v, want %d: those of the call in time",
						len(charges), charge.Subject, n, plan, err, want)
				}
			}
		}
	}
}
