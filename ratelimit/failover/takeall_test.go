package failover_test

import (
	"context"
	"errors"
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
func takeBoth(t *testing.T, l *failover.Limiter, user string, want ...ratelimit.Outcome) (decisions [2]ratelimit.Decision) {
	t.Helper()
	if err := l.TakeAll(t.Context(), bothCharges(user), decisions[:]); err != nil {
		t.Fatal(err)
	}
	for i, d := range decisions {
		if d.Outcome != want[i] {
			t.Errorf("%s, charge %d: got %v, want %v", user, i+1, d.Outcome, want[i])
		}
	}
	return decisions
}

// left returns what an engine says is left of a day.
func left(t *testing.T, l engine.Peeker, subject string, plan *ratelimit.Plan) int64 {
	t.Helper()
	d, err := l.Peek(t.Context(), subject, plan)
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining()
}

const (
	allowed = ratelimit.Allowed
	limited = ratelimit.Limited
	spared  = ratelimit.Spared
)

// During an outage the local engine decides about all charges, and what it admits is
// charged to the primary afterwards. The primary of this test is no MultiTaker.
func TestTakeAllThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primary, local := newShared(t), newEngine(t)
		l, err := failover.New(primary, failover.Options{Local: local, ConsecutiveFailures: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		takeBoth(t, l, "ann", allowed, allowed)
		takeBoth(t, l, "ann", allowed, allowed)
		if n := left(t, local, "everybody", ofEverbody); n != 2 {
			t.Errorf("everybody has %d left in the local engine, want the 2 left at the primary: half is used", n)
		}
		primary.set(down)
		takeBoth(t, l, "bob", allowed, allowed)
		takeBoth(t, l, "bob", allowed, allowed)
		takeBoth(t, l, "bob", spared, limited)
		if n := left(t, local, "bob", ofUser); n != 8 {
			t.Errorf("bob has %d left in the local engine, want 8 after two requests", n)
		}
		primary.set(nil)
		time.Sleep(time.Minute)
		for subject, plan := range map[string]*ratelimit.Plan{"ann": ofUser, "bob": ofUser, "everybody": ofEverbody} {
			want := engine.Of(plan).Quota(0).Limit - map[string]int64{"ann": 2, "bob": 2, "everybody": 4}[subject]
			if n := left(t, primary.engine, subject, plan); n != want {
				t.Errorf("after the outage %s has %d left at the primary, want %d", subject, n, want)
			}
		}
		takeBoth(t, l, "ann", spared, limited)
		if n := left(t, primary.engine, "ann", ofUser); n != 8 {
			t.Errorf("ann has %d left at the primary after a refusal, want her 8", n)
		}
	})
}

// A MultiTaker decides about all at once, and its refusals are mirrored.
func TestTakeAllOfAMultiTaker(t *testing.T) {
	primary, local := newEngine(t), newEngine(t)
	l, err := failover.New(primary, failover.Options{Local: local, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 4 {
		takeBoth(t, l, "ann", allowed, allowed)
	}
	takeBoth(t, l, "bob", spared, limited)
	if n := left(t, local, "everybody", ofEverbody); n != 0 {
		t.Errorf("everybody has %d left in the local engine, want none, as at the primary", n)
	}
	if n := left(t, local, "bob", ofUser); n != 10 {
		t.Errorf("bob has %d left in the local engine, want all 10", n)
	}
}

func TestTakeAllAlone(t *testing.T) {
	run(t, alone, failover.Options{ConsecutiveFailures: 1, Backoff: time.Hour}, func(r *rig) {
		r.shared.set(down)
		for range 2 { // the circuit is closed, and then open
			var decisions [2]ratelimit.Decision
			if err := r.TakeAll(ctx, bothCharges("ann"), decisions[:]); !errors.Is(err, ratelimit.ErrUnavailable) {
				t.Errorf("got error %v, want one that wraps ErrUnavailable", err)
			}
		}
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
	synctest.Test(t, func(t *testing.T) {
		primary, local := halfway{newEngine(t)}, newEngine(t)
		l, err := failover.New(primary, failover.Options{Local: local})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		takeBoth(t, l, "ann", allowed, allowed)
		if waited := time.Since(began); waited != 50*time.Millisecond {
			t.Errorf("the request waited for %v, want the budget of 50ms", waited)
		}
		synctest.Wait()
		if n := left(t, primary, "ann", ofUser); n != 10 {
			t.Errorf("ann has %d left at the primary, want her 10 back", n)
		}
		if n := left(t, local, "ann", ofUser); n != 9 {
			t.Errorf("ann has %d left in the local engine, want 9", n)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}
