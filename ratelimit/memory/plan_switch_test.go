package memory_test

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func seconds(limit int64, n int) ratelimit.Quota {
	return ratelimit.Quota{Limit: limit, Window: time.Duration(n) * time.Second}
}

// A window that holds nothing, after a refund, goes on beside those of another plan, for
// which the slot must have room, whether or not a charge comes before the switch.
func TestPlanSwitchBesideACharge(t *testing.T) {
	clock := enginetest.NewClock(noon)
	quotas := func(from int) (q []ratelimit.Quota) {
		for i := range 4 {
			q = append(q, seconds(1<<30, 100*(from+i)))
		}
		return q
	}
	plans := []*ratelimit.Plan{
		ratelimit.MustPlan("first", ratelimit.Penalty{}, quotas(1)...),
		ratelimit.MustPlan("second", ratelimit.Penalty{}, quotas(5)...),
	}
	const subjects = 3000
	l := newLimiter(t, memory.Options{Now: clock.Now})
	name := func(i int) string { return fmt.Sprint(i) }
	for i := range subjects {
		d := take(t, l, name(i), plans[0])
		if err := l.Adjust(ctx, name(i), &d, 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	var arrived atomic.Int64
	var wg sync.WaitGroup
	for _, plan := range plans {
		wg.Go(func() {
			for i := range subjects {
				for arrived.Add(1); arrived.Load() < 2*int64(i+1); {
					runtime.Gosched() // until both are there
				}
				take(t, l, name(i), plan)
			}
		})
	}
	wg.Wait()
	for i := range subjects {
		first, second := take(t, l, name(i), plans[0]), take(t, l, name(i), plans[1])
		usedFirst, usedSecond := 1<<30-first.Remaining(), 1<<30-second.Remaining()
		if usedFirst != 3 || usedSecond != 3 && usedSecond != 4 {
			t.Fatalf("subject %d: %d and %d units are used, want 3, and 3 or 4", i, usedFirst, usedSecond)
		}
	}
}

// A cost that no window can hold is refused before it is added to anything.
func TestEnormousCost(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	large := ratelimit.MustPlan("large", ratelimit.Penalty{}, ratelimit.PerDay(10))
	small := ratelimit.MustPlan("small", ratelimit.Penalty{}, ratelimit.PerDay(3))
	other := ratelimit.MustPlan("other", ratelimit.Penalty{}, ratelimit.PerHour(10))
	for range 7 {
		take(t, l, "a", large)
	}
	for _, plan := range []*ratelimit.Plan{small, large, other} {
		for _, cost := range []int64{math.MaxInt64, math.MaxInt64 - 2, math.MaxInt64 - 7, 1 << 62, 1 << 32} {
			if d, err := l.Take(ctx, "a", plan, cost); err == nil {
				t.Errorf("a cost of %d under %v: %v with %d remaining, want an error", cost, plan, d.Outcome, d.Remaining())
			}
		}
	}
	if d := take(t, l, "a", large); d.Remaining() != 2 {
		t.Errorf("%d remain after enormous costs, want 2", d.Remaining())
	}
}

// An account in the middle of a plan switch counts all of its windows without
// the lock, and drops the other plan's when they are over.
func TestPlansThatShareAWindow(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	one := ratelimit.MustPlan("one", ratelimit.Penalty{}, seconds(100, 60), seconds(1000, 86400))
	two := ratelimit.MustPlan("two", ratelimit.Penalty{}, seconds(100, 3600), seconds(2000, 86400))
	for i := range 40 {
		plan := []*ratelimit.Plan{one, two}[i%2]
		want := 99 - int64(i) + int64(i%2) // the second plan's window begins a request later
		if d := take(t, l, "a", plan); d.States[0].Remaining != want {
			t.Fatalf("after %d requests under both plans %d remain under %v, want %d", i+1, d.States[0].Remaining, plan, want)
		}
	}
	clock.Set(noon.Add(time.Minute))
	take(t, l, "a", two)
	if d := take(t, l, "a", one); d.States[0].Remaining != 99 || d.States[1].Remaining != 1000-42 {
		t.Errorf("in the next minute %d and %d remain, want 99 and 958", d.States[0].Remaining, d.States[1].Remaining)
	}
}
