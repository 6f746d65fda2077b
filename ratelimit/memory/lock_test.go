package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// Requests are answered without a lock, alone and in a group, if they are admitted in windows
// that are open, or refused in a way that changes nothing. The decisions are those of the
// model.
func TestTakesNoLock(t *testing.T) {
	graceful := ratelimit.DefaultPenalty()
	harsh, strict := graceful, graceful
	harsh.Grace, harsh.Strikes, strict.Grace = 0, 1, 0
	plan := func(p ratelimit.Penalty, quotas ...ratelimit.Quota) *ratelimit.Plan {
		return ratelimit.MustPlan("p", p, quotas...)
	}
	once, minute, day := ratelimit.PerMinute(1), ratelimit.PerMinute(2), ratelimit.PerDay(100)
	drops := ratelimit.PerMinute(6).Smooth(2)
	fast := ratelimit.PerSecond(10).Smooth(2)   // a unit is back within a second
	patient := ratelimit.PerMinute(2).Smooth(2) // a unit is back when the minute ends
	none := ratelimit.Penalty{}
	everybody := plan(graceful, ratelimit.PerMinute(100), day)
	for name, c := range map[string]struct {
		before, plan *ratelimit.Plan
		units        int // before
		outcome      ratelimit.Outcome
		locks        bool
	}{
		"admitted":                         {nil, plan(graceful, ratelimit.PerMinute(10), day), 3, ratelimit.Allowed, false},
		"admitted after a denial":          {plan(graceful, once, day), plan(graceful, ratelimit.PerMinute(10), day), 3, ratelimit.Allowed, false},
		"limited":                          {nil, plan(none, once, day), 3, ratelimit.Limited, false},
		"within the grace":                 {nil, plan(graceful, once, day), 3, ratelimit.Limited, false},
		"banned":                           {nil, plan(harsh, once, day), 3, ratelimit.Banned, false},
		"a strike":                         {nil, plan(strict, once, day), 3, ratelimit.Limited, true},
		"smooth":                           {nil, plan(strict, drops), 1, ratelimit.Allowed, false},
		"smooth, beside fixed windows":     {nil, plan(strict, drops, minute, day), 1, ratelimit.Allowed, false},
		"two smooth quotas":                {nil, plan(strict, drops, ratelimit.PerDay(90).Smooth(9)), 1, ratelimit.Allowed, false},
		"fixed after a smooth plan":        {plan(strict, drops, day), plan(strict, day), 1, ratelimit.Allowed, false},
		"smooth after a fixed plan":        {plan(strict, day), plan(strict, drops, day), 1, ratelimit.Allowed, false},
		"smooth, limited":                  {nil, plan(none, drops), 2, ratelimit.Limited, false},
		"smooth, limited for a moment":     {nil, plan(none, fast, day), 2, ratelimit.Limited, false},
		"smooth, limited by the window":    {nil, plan(none, ratelimit.PerMinute(6).Smooth(4), minute), 2, ratelimit.Limited, false},
		"smooth, limited by both":          {nil, plan(none, drops, minute), 2, ratelimit.Limited, false},
		"limited after a smooth plan":      {plan(none, drops), plan(none, minute), 2, ratelimit.Limited, false},
		"smooth, within the grace":         {nil, plan(graceful, drops, day), 3, ratelimit.Limited, false},
		"smooth, within the grace of both": {nil, plan(graceful, minute, patient), 3, ratelimit.Limited, false},
		"smooth, banned":                   {nil, plan(harsh, drops, day), 4, ratelimit.Banned, false},
		"smooth, a strike":                 {nil, plan(strict, drops, day), 2, ratelimit.Limited, true},
	} {
		for _, group := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", group: ", group), func(t *testing.T) {
				clock := ratelimittest.NewClock(noon)
				l, model := newLimiter(t, Options{Now: clock.Now}), enginetest.NewModel(clock.Now)
				takeAll := func(l engine.MultiTaker, plan *ratelimit.Plan) []ratelimit.Decision {
					charges := []ratelimit.Charge{{Subject: "a", Plan: plan, Cost: 1}, {Subject: "everybody", Plan: everybody, Cost: 1}}
					if !group {
						charges = charges[:1]
					}
					decisions := make([]ratelimit.Decision, len(charges))
					if err := l.TakeAll(ctx, charges, decisions); err != nil {
						t.Error(err)
					}
					return decisions
				}
				for range c.units {
					for _, plan := range []*ratelimit.Plan{c.before, c.plan} {
						if plan != nil {
							takeAll(l, plan)
							takeAll(model, plan)
						}
					}
				}
				for i := range l.segments {
					l.segments[i].mu.Lock()
				}
				answered := make(chan []ratelimit.Decision, 1)
				go func() {
					if group {
						answered <- takeAll(l, c.plan)
					} else {
						answered <- []ratelimit.Decision{take(t, l, "a", c.plan)}
					}
				}()
				var got []ratelimit.Decision
				if !c.locks {
					got = <-answered // or the test hangs
				}
				for i := range l.segments {
					l.segments[i].mu.Unlock()
				}
				if c.locks {
					got = <-answered
				}
				if diff := diffAll(takeAll(model, c.plan), got); diff != "" || got[0].Outcome != c.outcome {
					t.Errorf("got %v, want %v; the engine (+) and the model (-) differ:\n%s", got[0].Outcome, c.outcome, diff)
				}
			})
		}
	}
}

// So is a subject that was banned before its first request, or has sent none for long.
func TestBanWithoutAccountTakesNoLock(t *testing.T) {
	l, model := newLimiter(t, Options{Now: noonSharp}), enginetest.NewModel(noonSharp)
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(6).Smooth(2), ratelimit.PerDay(100))
	must(t, l.Ban(ctx, "a", time.Hour, ""))
	must(t, model.Ban(ctx, "a", time.Hour, ""))
	s := &l.segments[l.key.sum("a")>>l.shift]
	s.mu.Lock()
	got := take(t, l, "a", plan) // or the test hangs
	s.mu.Unlock()
	if diff := diffDecisions(take(t, model, "a", plan), got); diff != "" || got.Outcome != ratelimit.Banned {
		t.Errorf("got %v, want banned; the engine (+) and the model (-) differ:\n%s", got.Outcome, diff)
	}
}

// A subject of a group that finds no room is immediately as it was. Others may charge it before
// the group ends.
func TestAbandonLeavesTheSubjectWithoutRoom(t *testing.T) {
	l := newLimiter(t, Options{Now: noonSharp})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	takeUnits(t, l, "a", plan, 1)
	rulings := []ruling{{subject: l.lock("a")}}
	rulings[0].open(&ratelimit.Decision{Plan: plan, Cost: 1})
	rulings[0].unfreeze() // as reserve does if there is no room
	takeUnits(t, l, "a", plan, 1)
	abandon(rulings, 0)
	rulings[0].unlock()
	if d, err := l.Peek(t.Context(), "a", plan); err != nil || d.Remaining() != 8 {
		t.Errorf("%d of 10 are left, with error %v, want 8", d.Remaining(), err)
	}
}

// By a late time a request was banned. Another one has been admitted since.
func TestAdmissionShowsNoBan(t *testing.T) {
	l := newLimiter(t, Options{Now: noonSharp})
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(6).Smooth(2))
	takeUnits(t, l, "a", plan, 1)
	h := l.key.sum("a")
	table := l.tables[h>>l.shift].Load()
	at, _ := table.find(h)
	d := ratelimit.Decision{Plan: plan, Cost: 1, Time: noonSharp().UnixNano(), BanEnds: noonSharp().Unix() + 1, RetryAfter: time.Second}
	if admitted, _ := l.admitSmooth(table.slot(at), h, &d, nil); !admitted || d.BanEnds != 0 || d.RetryAfter != 0 {
		t.Errorf("%+v, want admitted without the lock, and no ban", d)
	}
}

// A refund may come between the look that would refuse a request and the exact time, which
// then admits it: nothing of the look is left in the decision.
func TestAdmittedAfterALook(t *testing.T) {
	calls, meanwhile := 0, func() {}
	l, err := New(Options{Now: func() time.Time {
		if calls++; calls == 2 {
			meanwhile()
		}
		return time.Date(2026, time.March, 1, 12, 0, 59, 500_000_000, time.UTC)
	}})
	must(t, err)
	plan := ratelimit.MustPlan("one", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	first, err := l.Take(t.Context(), "a", plan, 1)
	must(t, err)
	calls, meanwhile = 0, func() {
		if err := l.Adjust(t.Context(), "a", &first, 0, ""); err != nil {
			t.Error(err)
		}
	}
	if d, err := l.Take(t.Context(), "a", plan, 1); err != nil || !d.Allowed() || d.RetryAfter != 0 {
		t.Errorf("after a refund: %v, wait %v, %v, want an admission without a wait", d.Outcome, d.RetryAfter, err)
	}
}
