package memory

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

// A group is decided without a lock if it is admitted in windows that are open, or
// refused in a way that changes nothing. The decisions are those of the slow path.
func TestGroupsTakeNoLock(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	graceful := ratelimit.DefaultPenalty()
	harsh, strict := graceful, graceful
	harsh.Grace, harsh.Strikes = 0, 1
	strict.Grace = 0
	everybody := ratelimit.MustPlan("everybody", graceful, ratelimit.PerMinute(100), ratelimit.PerDay(100))
	for name, c := range map[string]struct {
		penalty ratelimit.Penalty
		limit   int64
		outcome ratelimit.Outcome
		free    bool // of locks
	}{
		"admitted":         {graceful, 10, ratelimit.Allowed, true},
		"no penalty":       {ratelimit.Penalty{}, 1, ratelimit.Limited, true},
		"within the grace": {graceful, 1, ratelimit.Limited, true},
		"banned":           {harsh, 1, ratelimit.Banned, true},
		"a strike":         {strict, 1, ratelimit.Limited, false},
	} {
		t.Run(name, func(t *testing.T) {
			plan := ratelimit.MustPlan("p", c.penalty, ratelimit.PerMinute(c.limit), ratelimit.PerDay(100))
			charges := []ratelimit.Charge{{Subject: "a", Plan: plan, Cost: 1}, {Subject: "everybody", Plan: everybody, Cost: 1}}
			decisions, want := make([]ratelimit.Decision, 2), make([]ratelimit.Decision, 2)
			l, model := internalLimiter(t, Options{Now: enginetest.NewClock(now).Now}), enginetest.NewModel(enginetest.NewClock(now).Now)
			for range 3 {
				for _, l := range []engine.MultiTaker{l, model} {
					if err := l.TakeAll(context.Background(), charges, decisions); err != nil {
						t.Fatal(err)
					}
				}
			}
			for i := range l.segments {
				l.segments[i].mu.Lock()
			}
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				if err := l.TakeAll(context.Background(), charges, decisions); err != nil {
					t.Error(err)
				}
			}()
			if c.free {
				<-answered // or the test hangs
			}
			for i := range l.segments {
				l.segments[i].mu.Unlock()
			}
			<-answered
			if err := model.TakeAll(context.Background(), charges, want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, decisions, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b })); diff != "" {
				t.Errorf("the engine (+) and the model (-) differ:\n%s", diff)
			}
			if decisions[0].Outcome != c.outcome {
				t.Errorf("got %v, want %v", decisions[0].Outcome, c.outcome)
			}
		})
	}
}

// A subject of a group that finds no room is as it was at once. Others may charge it before
// the group ends.
func TestAbandonLeavesTheSubjectWithoutRoom(t *testing.T) {
	l := internalLimiter(t, Options{Now: noonSharp})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	internalTake(t, l, "a", plan, 1)
	rulings := []ruling{{subject: l.lock("a")}}
	rulings[0].open(&ratelimit.Decision{Plan: plan, Cost: 1})
	rulings[0].unfreeze() // as reserve does if there is no room
	internalTake(t, l, "a", plan, 1)
	abandon(rulings, 0)
	rulings[0].unlock()
	if d, err := l.Peek(t.Context(), "a", plan); err != nil || d.Remaining() != 8 {
		t.Errorf("%d of 10 are left, with error %v, want 8", d.Remaining(), err)
	}
}
