package memory

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
)

func noonSharp() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

// Subjects with more combinations of limits than there are layouts are counted all
// the same, and held from their first unit on.
func TestMoreLimitsThanLayouts(t *testing.T) {
	race.Skip(t)
	l := internalLimiter(t, Options{MaxSubjects: 30_000, Now: noonSharp})
	for i := range 150 {
		for j := range 150 {
			plan := ratelimit.MustPlan("", ratelimit.Penalty{},
				ratelimit.PerHour(int64(8+i%8)<<(i/8)), ratelimit.PerDay(int64(8+j%8)<<(j/8)))
			internalTake(t, l, fmt.Sprint(i, " ", j), plan, 1)
		}
	}
	h := l.key.sum("149 149")
	table := l.tables[h>>l.shift].Load()
	i, _ := table.find(h)
	m := table.slot(i).meter()
	if held := l.segments[h>>l.shift].heldUntil(table.slot(i), m, l.clock.now()); held == 0 {
		t.Error("a subject whose limits have no layout is not held")
	}
}

// If there are no layouts left even for windows alone, a subject with windows that
// are new is refused, and no other.
func TestMoreWindowsThanLayouts(t *testing.T) {
	race.Skip(t)
	l := internalLimiter(t, Options{MaxSubjects: 30_000, Now: noonSharp})
	plan := func(i int) *ratelimit.Plan {
		return ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.Quota{Limit: 100, Window: time.Duration(i+1) * time.Second})
	}
	for i := range maxLayouts {
		internalTake(t, l, fmt.Sprint(i), plan(i), 1)
	}
	if _, err := l.Take(context.Background(), "new", plan(maxLayouts), 1); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("windows that are new: error %v, want ErrUnavailable", err)
	}
	internalTake(t, l, "new", plan(maxLayouts-1), 1)
	internalTake(t, l, "another", plan(0), 1)
}

// A layout may be replaced by one with more windows while a request still reads
// it. The request must not read beyond the slot.
func TestLayoutThatIsReplacedWhileItIsRead(t *testing.T) {
	l := internalLimiter(t, Options{Now: noonSharp})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(10), ratelimit.PerHour(10))
	internalTake(t, l, "a", plan, 1)
	h := l.key.sum("a")
	table := l.tables[h>>l.shift].Load()
	i, _ := table.find(h)
	slot := table.slot(i)
	replaced := l.layouts.get(slot.meter().layout())
	larger := replaced.load()
	for larger.n < maxWindows {
		larger.lengths[larger.n], larger.limits[larger.n] = time.Duration(24+larger.n)*time.Hour, 10
		larger.n++
	}
	replaced.store(&larger)
	d := ratelimit.Decision{Plan: plan, Cost: 1, Time: noonSharp().UnixNano()}
	l.admit(slot, h, &d, nil)
	l.look(table, i, slot, h, &d)
}
