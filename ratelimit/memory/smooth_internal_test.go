package memory

import (
	"testing"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A denial within the grace is left to the lock if a window of another plan began since the
// strike: the record must outlast it.
func TestSmoothRecordOutlastsWindowsOfOtherPlans(t *testing.T) {
	penalty := ratelimit.DefaultPenalty()
	mixed := ratelimit.MustPlan("mixed", penalty, ratelimit.PerMinute(3), ratelimit.PerHour(60).Smooth(3))
	later := ratelimit.MustPlan("later", penalty, ratelimit.Quota{Limit: 9, Window: fixedwindow.MaxLength})
	l := internalLimiter(t, Options{Now: noonSharp})
	look := func() verdict {
		d := ratelimit.Decision{Plan: mixed, Cost: 1, Time: noonSharp().UnixNano()}
		h := l.key.sum("a")
		table := l.tables[h>>l.shift].Load()
		at, _ := table.find(h)
		return l.look(table, at, table.slot(at), h, &d)
	}
	internalTake(t, l, "a", mixed, 3)
	if d, err := l.Take(t.Context(), "a", mixed, 1); err != nil || d.Outcome != ratelimit.Limited {
		t.Fatalf("%+v, %v, want limited", d, err)
	}
	if v := look(); v != refused {
		t.Errorf("after a strike the verdict is %d, want refused without the lock", v)
	}
	internalTake(t, l, "a", later, 1)
	if v := look(); v != unclear {
		t.Errorf("with a window that ends after the record the verdict is %d, want it left to the lock", v)
	}
}
