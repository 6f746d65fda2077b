package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
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

// A subject of a group that finds no room is as it was at once. Others may charge it before
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

// After a denial, admissions take no lock if a window ends before the record expires or
// then, since that end takes it. They do if no window ends before.
func TestAdmissionsAfterADenialReadTheRecord(t *testing.T) {
	drops := ratelimit.PerMinute(6).Smooth(2)
	for name, c := range map[string]struct {
		quotas []ratelimit.Quota
		reads  bool
	}{
		"a bucket":                    {[]ratelimit.Quota{drops}, true},
		"a bucket and a longer day":   {[]ratelimit.Quota{drops, ratelimit.PerDay(100)}, false},
		"a bucket and a shorter hour": {[]ratelimit.Quota{ratelimit.PerDay(3).Smooth(2), ratelimit.PerHour(100)}, false},
		"windows":                     {[]ratelimit.Quota{ratelimit.PerMinute(2), ratelimit.PerDay(100)}, false},
	} {
		l := newLimiter(t, Options{Now: noonSharp})
		plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), c.quotas...)
		takeUnits(t, l, "a", plan, 2)
		if d, err := l.Take(t.Context(), "a", plan, 1); err != nil || d.Outcome != ratelimit.Limited {
			t.Fatalf("%+v, %v, want limited", d, err)
		}
		h := l.key.sum("a")
		table := l.tables[h>>l.shift].Load()
		at, _ := table.find(h)
		if reads := table.slot(at).meter().has(checkRecord); reads != c.reads {
			t.Errorf("%s: admissions read the record: %t, want %t", name, reads, c.reads)
		}
	}
}

// A banned subject is refused by its own slot, without its record, also when its table has
// grown. After a step back of the clock, which makes the ban shorter, the record is read.
func TestSlotHasTheBan(t *testing.T) {
	clock := ratelimittest.NewClock(noonSharp())
	l := newLimiter(t, Options{Now: clock.Now})
	want := func(what string, ends int64) {
		t.Helper()
		h := l.key.sum("a")
		table := l.tables[h>>l.shift].Load()
		at, _ := table.find(h)
		if got := table.peekBan(table.slot(at).meter(), clock.Now().UnixNano()); got != ends {
			t.Errorf("%s: the slot has a ban until %d, want %d", what, got, ends)
		}
	}
	first := take(t, l, "a", roomy)
	want("without a ban", 0)
	ban(t, l, "a", time.Hour)
	ends := noonSharp().Unix() + 3600
	want("banned", ends)
	must(t, l.Adjust(ctx, "a", &first, 5, ""))
	want("after a charge", ends)
	for i := range 100 * len(l.segments) {
		take(t, l, fmt.Sprint(i), roomy)
	}
	want("in a table that has grown", ends)
	clock.Set(noonSharp().Add(-10 * time.Second))
	for i := range 100 * len(l.segments) { // their bans begin before that of a
		ban(t, l, fmt.Sprint(i), time.Hour)
	}
	clock.Set(noonSharp().Add(-2 * time.Second))
	want("the clock stepped back", 0)
	if d := take(t, l, "a", roomy); d.BanEnds != ends-2 || d.States[0].Remaining != fixedwindow.MaxUnits-5 {
		t.Errorf("two seconds back: a ban until %d and %d left, want %d and %d", d.BanEnds, d.States[0].Remaining, ends-2, int64(fixedwindow.MaxUnits-5))
	}
	_, err := l.Unban(ctx, "a")
	must(t, err)
	want("unbanned", 0)
}

// A denial within the grace is left to the lock if a window of another plan began since the
// strike: the record must outlast it.
func TestSmoothRecordOutlastsWindowsOfOtherPlans(t *testing.T) {
	penalty := ratelimit.DefaultPenalty()
	mixed := ratelimit.MustPlan("mixed", penalty, ratelimit.PerMinute(3), ratelimit.PerHour(60).Smooth(3))
	later := ratelimit.MustPlan("later", penalty, ratelimit.Quota{Limit: 9, Window: fixedwindow.MaxLength})
	l := newLimiter(t, Options{Now: noonSharp})
	look := func() verdict {
		d := ratelimit.Decision{Plan: mixed, Cost: 1, Time: noonSharp().UnixNano()}
		h := l.key.sum("a")
		table := l.tables[h>>l.shift].Load()
		at, _ := table.find(h)
		return l.look(table, table.slot(at), h, &d)
	}
	takeUnits(t, l, "a", mixed, 3)
	if d, err := l.Take(t.Context(), "a", mixed, 1); err != nil || d.Outcome != ratelimit.Limited {
		t.Fatalf("%+v, %v, want limited", d, err)
	}
	if v := look(); v != refused {
		t.Errorf("after a strike the verdict is %d, want refused without the lock", v)
	}
	takeUnits(t, l, "a", later, 1)
	if v := look(); v != unclear {
		t.Errorf("with a window that ends after the record the verdict is %d, want it left to the lock", v)
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
