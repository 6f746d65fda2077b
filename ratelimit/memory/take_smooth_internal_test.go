package memory

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

// Requests of a subject with a bucket are answered without the lock if they are admitted
// in windows that are open, or refused in a way that changes nothing. The decisions are
// those of the model.
func TestSmoothTakesNoLock(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	graceful := ratelimit.DefaultPenalty()
	harsh, strict := graceful, graceful
	patient := ratelimit.PerMinute(2).Smooth(2) // a unit is back when the minute ends
	harsh.Grace, harsh.Strikes = 0, 1
	strict.Grace = 0
	plan := func(p ratelimit.Penalty, quotas ...ratelimit.Quota) *ratelimit.Plan {
		return ratelimit.MustPlan("p", p, quotas...)
	}
	drops, minute, day := ratelimit.PerMinute(6).Smooth(2), ratelimit.PerMinute(2), ratelimit.PerDay(100)
	fast := ratelimit.PerSecond(10).Smooth(2) // a unit is back within a second
	for name, c := range map[string]struct {
		before, plan *ratelimit.Plan
		units        int64
		outcome      ratelimit.Outcome
		free         bool // of the lock
	}{
		"admitted":                        {nil, plan(strict, drops), 1, ratelimit.Allowed, true},
		"admitted beside fixed windows":   {nil, plan(strict, drops, minute, day), 1, ratelimit.Allowed, true},
		"admitted under two":              {nil, plan(strict, drops, ratelimit.PerDay(90).Smooth(9)), 1, ratelimit.Allowed, true},
		"admitted after another plan":     {plan(strict, drops, day), plan(strict, day), 1, ratelimit.Allowed, true},
		"the other plan again":            {plan(strict, day), plan(strict, drops, day), 1, ratelimit.Allowed, true},
		"no penalty":                      {nil, plan(ratelimit.Penalty{}, drops), 2, ratelimit.Limited, true},
		"no penalty, for a moment":        {nil, plan(ratelimit.Penalty{}, fast, day), 2, ratelimit.Limited, true},
		"no penalty, by the fixed window": {nil, plan(ratelimit.Penalty{}, ratelimit.PerMinute(6).Smooth(4), minute), 2, ratelimit.Limited, true},
		"no penalty, by both":             {nil, plan(ratelimit.Penalty{}, drops, minute), 2, ratelimit.Limited, true},
		"after another plan":              {plan(ratelimit.Penalty{}, drops), plan(ratelimit.Penalty{}, minute), 2, ratelimit.Limited, true},
		"within the grace":                {nil, plan(graceful, drops, day), 3, ratelimit.Limited, true},
		"within the grace, by both":       {nil, plan(graceful, minute, patient), 3, ratelimit.Limited, true},
		"banned":                          {nil, plan(harsh, drops, day), 4, ratelimit.Banned, true},
		"a strike":                        {nil, plan(strict, drops, day), 2, ratelimit.Limited, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, model := internalLimiter(t, Options{Now: enginetest.NewClock(now).Now}), enginetest.NewModel(enginetest.NewClock(now).Now)
			for range c.units {
				for _, l := range []ratelimit.Limiter{l, model} {
					for _, plan := range []*ratelimit.Plan{c.before, c.plan} {
						if _, err := l.Take(context.Background(), "a", plan, 1); plan != nil && err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			s := l.lock("a")
			type result struct {
				d   ratelimit.Decision
				err error
			}
			answered := make(chan result, 1)
			go func() {
				d, err := l.Take(context.Background(), "a", c.plan, 1)
				answered <- result{d, err}
			}()
			var got result
			if c.free {
				got = <-answered // or the test hangs
				s.unlock()
			} else {
				s.unlock()
				got = <-answered
			}
			want, err := model.Take(context.Background(), "a", c.plan, 1)
			if err != nil || got.err != nil {
				t.Fatal(err, got.err)
			}
			if diff := cmp.Diff(want, got.d, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b })); diff != "" {
				t.Errorf("the engine (+) and the model (-) differ:\n%s", diff)
			}
			if got.d.Outcome != c.outcome {
				t.Errorf("got %v, want %v", got.d.Outcome, c.outcome)
			}
		})
	}
}

// By a late time a request was banned. Another one has been admitted since.
func TestAdmissionShowsNoBan(t *testing.T) {
	l := internalLimiter(t, Options{Now: noonSharp})
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(6).Smooth(2))
	internalTake(t, l, "a", plan, 1)
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
		l := internalLimiter(t, Options{Now: noonSharp})
		plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), c.quotas...)
		internalTake(t, l, "a", plan, 2)
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
