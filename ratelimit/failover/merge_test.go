package failover_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// What the journal holds of a subject is merged before its next request is
// decided, even if it is far from its turn.
func TestMergeBeforeTheNextRequest(t *testing.T) {
	pick(t, failover.Options{}, func(r *rig, p *picky) {
		five := ratelimit.MustPlan("five", ratelimit.Penalty{}, ratelimit.PerDay(5))
		r.lose()
		const subjects = 300
		for i := range subjects {
			for range 5 {
				r.take(fmt.Sprint(i), five)
			}
		}
		// A second for each subject but the request's: it takes minutes to merge all.
		var mu sync.Mutex
		p.charge = func(context.Context, string) error {
			if mu.TryLock() {
				defer mu.Unlock()
				time.Sleep(900 * time.Millisecond)
			}
			return nil
		}
		r.shared.set(nil)
		for r.Open() {
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		if n := r.Stats().Pending; n < subjects/2 {
			r.Fatalf("%d subjects are left in the journal: the test has tested nothing", n)
		}
		for i := range subjects {
			began := time.Now()
			charges := []ratelimit.Charge{{Subject: "first", Plan: daily, Cost: 1}, {Subject: fmt.Sprint(i), Plan: five, Cost: 1}}
			charges = charges[i%2:] // alone, or with one before
			decisions := make([]ratelimit.Decision, len(charges))
			must(r, r.TakeAll(ctx, charges, decisions))
			if d := decisions[len(decisions)-1]; d.Outcome != ratelimit.Limited {
				r.Errorf("subject %d, whose quota was used up in the outage, was %v", i, d.Outcome)
			}
			if waited := time.Since(began); waited > 50*time.Millisecond {
				r.Errorf("a request waited %v for the merging, longer than the budget", waited)
			}
		}
		time.Sleep(10 * time.Second)
		if s := r.Stats(); s.Pending != 0 {
			r.Errorf("not everything was merged: %+v", s)
		}
	})
}

// A merge that hangs delays requests of the subject by no more than the budget.
func TestMergeHangs(t *testing.T) {
	run(t, withLocal, failover.Options{ConsecutiveFailures: 64}, func(r *rig) {
		r.shared.set(down)
		r.take("a", daily)
		r.shared.set(hangs)
		for range 3 {
			began := time.Now()
			if r.take("a", daily); time.Since(began) != 50*time.Millisecond {
				r.Errorf("waited %v, want the budget of 50ms", time.Since(began))
			}
		}
		r.regain()
		r.wantUsed("when the primary is back", r.shared.engine, "a", daily, "4/24h0m0s")
	})
}

// A request of a caller that left is charged, if the primary charges it.
func TestCallerLeaves(t *testing.T) {
	run(t, withLocal, failover.Options{}, func(r *rig) {
		leaving, cancel := context.WithCancel(ctx)
		r.shared.set(func(context.Context) error { cancel(); return nil })
		if _, err := r.Take(leaving, "a", daily, 1); err != nil {
			r.Errorf("a decision that the primary made: %v", err)
		}
		r.wantUsed("to leave does not give the charge back", r.shared.engine, "a", daily, "1/24h0m0s")
	})
}
