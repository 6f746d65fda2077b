package redislimit_test

import (
	"fmt"
	"sync"
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

// Groups that come together share calls of the script, in which a subject stands once.
// Groups about the same subjects are decided one after the other.
func TestGroupsOfOneCall(t *testing.T) {
	m, c := mini(t)
	m.SetTime(time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC))
	l := newLimiter(t, c)
	penalty := ratelimit.Penalty{Strikes: 2, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Minute}
	own := ratelimit.MustPlan("own", penalty, ratelimit.PerMinute(3), ratelimit.PerDay(100))
	shared := ratelimit.MustPlan("shared", ratelimit.Penalty{}, ratelimit.PerHour(1000))
	const callers, each = 20, 10
	var mu sync.Mutex
	outcomes := map[ratelimit.Outcome]int{}
	var wg sync.WaitGroup
	for i := range callers * each {
		wg.Go(func() {
			charges := []ratelimit.Charge{{Subject: fmt.Sprint("caller ", i%callers), Plan: own, Cost: 1}, {Subject: "shared", Plan: shared, Cost: 2}}
			decisions := make([]ratelimit.Decision, 2)
			if err := l.TakeAll(ctx, charges, decisions); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes[decisions[0].Outcome]++
		})
	}
	wg.Wait()
	// Of ten requests of a caller three are admitted, two are strikes, one starts a ban.
	if outcomes[ratelimit.Allowed] != 3*callers || outcomes[ratelimit.Limited] != 2*callers || outcomes[ratelimit.Banned] != 5*callers {
		t.Errorf("got %v for %d callers with 10 requests each, want 3 allowed, 2 limited and 5 banned for each", outcomes, callers)
	}
	d, err := l.Peek(ctx, "shared", shared)
	if err != nil || d.Remaining() != 1000-2*3*callers {
		t.Errorf("the shared subject has %d left and error %v, want that only requests that were admitted count", d.Remaining(), err)
	}
	bans, err := l.Bans(ctx)
	if err != nil || len(bans) != callers {
		t.Errorf("%d bans are listed, with error %v, want one for each of %d callers", len(bans), err, callers)
	}
}
