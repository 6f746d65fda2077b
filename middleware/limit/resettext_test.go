package limit_test

import (
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// X-RateLimit-Reset is that of the decision, whatever the decisions before it were.
func TestResetIsOfTheDecision(t *testing.T) {
	fixed := ratelimit.MustPlan("fixed", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(100))
	smooth := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(10))
	for _, plan := range []*ratelimit.Plan{fixed, fixed.WithoutPenalty(), smooth} {
		// Windows one after the other, a clock that steps back and far ahead, times before
		// 1970, windows that begin with each subject, and a ban that ends later.
		for _, at := range []int64{-1, 60, 60, 60, 120, 120, 60, 1 << 40, 180, 180, 61, 62, 61, 240, 240, -1, 0, 9_000_000_000, 240} {
			for _, bans := range []int64{0, at + 7} {
				d := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: plan, Cost: 1, Time: (at - 30) * 1e9, BanEnds: bans}
				d.States[0] = ratelimit.State{Remaining: 59, Reset: at}
				if bans != 0 {
					d.Outcome = ratelimit.Banned
				}
				for range 3 {
					if got := resetOf(&d); got != strconv.FormatInt(max(at, bans), 10) {
						t.Fatalf("%v: X-RateLimit-Reset is %s for a reset at %d and a ban until %d", plan, got, at, bans)
					}
				}
			}
		}
	}
}

// Also if engines whose windows end at different times share the plan.
func TestResetIsOfTheDecisionConcurrently(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60))
	var all sync.WaitGroup
	for n := range int64(4) {
		all.Go(func() {
			for i := range int64(1000) {
				at := i/10*60 + n/2 // two and two the same
				d := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: plan, Time: at * 1e9}
				d.States[0].Reset = at
				if got := resetOf(&d); got != strconv.FormatInt(at, 10) {
					t.Errorf("X-RateLimit-Reset is %s, want %d", got, at)
					return
				}
			}
		})
	}
	all.Wait()
}

// The fields cost two allocations, and one if the digits of Reset are kept and what is
// left is below ten: also after a ban, and if the resets of subjects differ.
func TestHeaderAllocations(t *testing.T) {
	h := make(http.Header, 4)
	day, bans := ratelimit.PerDay(1000), ratelimit.DefaultPenalty()
	decision := func(p *ratelimit.Plan, left, reset int64) *ratelimit.Decision {
		d := &ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: p, Time: 1e9}
		d.States[0] = ratelimit.State{Remaining: left, Reset: reset}
		return d
	}
	kept, banned, other := ratelimit.MustPlan("p", bans, day), ratelimit.MustPlan("p", bans, day), ratelimit.MustPlan("p", bans, day)
	limit.XRateLimit.Set(h, decision(banned, 9, 86400))
	during := decision(banned, 0, 86400)
	during.Outcome, during.BanEnds = ratelimit.Banned, 90000
	limit.XRateLimit.Set(h, during)
	seconds := int64(0)
	for what, c := range map[string]struct {
		most float64
		set  func()
	}{
		"more than ten left":    {2, func() { limit.XRateLimit.Set(h, decision(kept, 999, 86400)) }},
		"nine left":             {1, func() { limit.XRateLimit.Set(h, decision(kept, 9, 86400)) }},
		"nine left after a ban": {1, func() { limit.XRateLimit.Set(h, decision(banned, 9, 86400)) }},
		"resets that differ": {2, func() {
			seconds++
			limit.XRateLimit.Set(h, decision(other, 999, 86400+seconds))
		}},
	} {
		c.set()
		c.set()
		if n := testing.AllocsPerRun(100, c.set); n != c.most {
			t.Errorf("%s: the fields cost %v allocations, want %v", what, n, c.most)
		}
	}
}

func resetOf(d *ratelimit.Decision) string {
	h := http.Header{}
	limit.XRateLimit.Set(h, d)
	return h.Get("X-RateLimit-Reset")
}
