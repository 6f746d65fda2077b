package memory

import (
	"context"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

// A flood of requests that are refused and change nothing is answered without the
// lock: those of a banned subject, those within the grace, and those under a plan
// without a penalty. A request that is a strike waits for the lock.
func TestFloodTakesNoLock(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	graceful := ratelimit.DefaultPenalty()
	harsh := graceful
	harsh.Grace, harsh.Strikes = 0, 1
	strict := graceful
	strict.Grace = 0
	for name, c := range map[string]struct {
		penalty ratelimit.Penalty
		outcome ratelimit.Outcome
		free    bool // of the lock
	}{
		"no penalty":       {ratelimit.Penalty{}, ratelimit.Limited, true},
		"within the grace": {graceful, ratelimit.Limited, true},
		"banned":           {harsh, ratelimit.Banned, true},
		"a strike":         {strict, ratelimit.Limited, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := internalLimiter(t, Options{Now: enginetest.NewClock(now).Now})
			plan := ratelimit.MustPlan("p", c.penalty, ratelimit.PerMinute(1), ratelimit.PerDay(100))
			for range 3 {
				internalTake(t, l, "a", plan, 1)
			}
			h := l.key.sum("a")
			table := l.tables[h>>l.shift].Load()
			i, _ := table.find(h)
			d := ratelimit.Decision{Plan: plan, Cost: 1, Time: now.UnixNano()}
			if l.admit(table.slot(i), h, &d, nil) {
				t.Fatal("admitted, want refused")
			}
			if v := l.look(table, i, table.slot(i), h, &d); (v == refused) != c.free {
				t.Fatalf("refused without the lock: %v, want %v", v == refused, c.free)
			}
			want, err := l.Peek(context.Background(), "a", plan)
			if err != nil {
				t.Fatal(err)
			}
			if c.free && (d.Outcome != c.outcome || d.States != want.States || d.RetryAfter != want.RetryAfter || d.StrikesLeft != want.StrikesLeft) {
				t.Errorf("without the lock: %+v\nby a peek: %+v", d, want)
			}
		})
	}
}
