package failover_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var (
	ofUser     = ratelimit.MustPlan("user", ratelimit.Penalty{}, ratelimit.PerDay(10))
	ofEverbody = ratelimit.MustPlan("everybody", ratelimit.Penalty{}, ratelimit.PerDay(4))
)

func bothCharges(user string) []ratelimit.Charge {
	return []ratelimit.Charge{{Subject: user, Plan: ofUser, Cost: 1}, {Subject: "everybody", Plan: ofEverbody, Cost: 1}}
}

// takeBoth takes one unit of a user and of everybody, and fails unless the outcomes
// are as wanted.
func (r *rig) takeBoth(user string, want ...ratelimit.Outcome) {
	r.Helper()
	var decisions [2]ratelimit.Decision
	must(r, r.TakeAll(ctx, bothCharges(user), decisions[:]))
	for i, d := range decisions {
		if d.Outcome != want[i] {
			r.Errorf("%s, charge %d: got %v, want %v", user, i+1, d.Outcome, want[i])
		}
	}
}

const (
	allowed = ratelimit.Allowed
	limited = ratelimit.Limited
	skipped = ratelimit.Skipped
)

// During an outage the local engine decides about all charges, and what it admits is
// charged to the primary afterwards. The primary of this test is no MultiTaker.
func TestTakeAllThroughAnOutage(t *testing.T) {
	run(t, withLocal, failover.Options{ConsecutiveFailures: 1}, func(r *rig) {
		r.takeBoth("ann", allowed, allowed)
		r.takeBoth("ann", allowed, allowed)
		r.wantUsed("half is used", r.local, "everybody", ofEverbody, "2/24h0m0s")
		r.shared.set(down)
		r.takeBoth("bob", allowed, allowed)
		r.takeBoth("bob", allowed, allowed)
		r.takeBoth("bob", skipped, limited)
		r.wantUsed("two requests were admitted", r.local, "bob", ofUser, "2/24h0m0s")
		r.shared.set(nil)
		time.Sleep(time.Minute)
		r.wantUsed("after the outage", r.shared.engine, "ann", ofUser, "2/24h0m0s")
		r.wantUsed("after the outage", r.shared.engine, "bob", ofUser, "2/24h0m0s")
		r.wantUsed("after the outage", r.shared.engine, "everybody", ofEverbody, "4/24h0m0s")
		r.takeBoth("ann", skipped, limited)
		r.wantUsed("after a refusal", r.shared.engine, "ann", ofUser, "2/24h0m0s")
	})
}

// A MultiTaker decides about all at once, and its refusals are mirrored.
func TestTakeAllOfAMultiTaker(t *testing.T) {
	run(t, withLocal, failover.Options{}, func(r *rig) {
		r.use(r.shared.engine, failover.Options{Local: r.local})
		for range 4 {
			r.takeBoth("ann", allowed, allowed)
		}
		r.takeBoth("bob", skipped, limited)
		r.wantUsed("as at the primary", r.local, "everybody", ofEverbody, "4/24h0m0s")
		r.wantUsed("as at the primary", r.local, "bob", ofUser, "0/24h0m0s")
	})
}

// halfway is a primary that makes charges in order, and does not answer about everybody.
type halfway struct{ *memory.Limiter }

func (h halfway) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	return engine.TakeInOrder(ctx, h, charges, decisions)
}

func (h halfway) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if subject == "everybody" {
		<-ctx.Done()
		return ratelimit.Decision{}, ctx.Err()
	}
	return h.Limiter.Take(ctx, subject, plan, cost)
}

// A primary that stops answering between two charges keeps none of them, and the
// request waits no longer than the budget.
func TestTakeAllGivesBackAtTheEndOfTheBudget(t *testing.T) {
	run(t, withLocal, failover.Options{}, func(r *rig) {
		r.use(halfway{r.shared.engine}, failover.Options{Local: r.local})
		began := time.Now()
		r.takeBoth("ann", allowed, allowed)
		if waited := time.Since(began); waited != 50*time.Millisecond {
			t.Errorf("the request waited for %v, want the budget of 50ms", waited)
		}
		synctest.Wait()
		r.wantUsed("given back", r.shared.engine, "ann", ofUser, "0/24h0m0s")
		r.wantUsed("admitted here", r.local, "ann", ofUser, "1/24h0m0s")
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}
