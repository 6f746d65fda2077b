package memory

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

func group(plan *ratelimit.Plan, subjects ...string) (charges []ratelimit.Charge) {
	for _, s := range subjects {
		charges = append(charges, ratelimit.Charge{Subject: s, Plan: plan, Cost: 1})
	}
	return charges
}

// If there is no room for one subject of a group, nothing is charged to the others, and
// those that were new have no place.
func TestGroupWithoutRoom(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerHour(4), ratelimit.PerDay(4))
	wider := ratelimit.MustPlan("wider", ratelimit.Penalty{}, ratelimit.PerMinute(4), ratelimit.PerHour(4), ratelimit.PerDay(4))
	now := noon
	l := newLimiter(t, Options{MaxSubjects: 4, Now: func() time.Time { return now }})
	for i := range 3 {
		for range 2 { // half of the limit, so that it keeps its place
			take(t, l, fmt.Sprint("kept ", i), plan)
		}
	}
	charges := group(plan, "kept 0", "new 0", "kept 1", "new 1", "kept 2")
	charges[0].Plan = wider // its slot gets one window more
	decisions := make([]ratelimit.Decision, len(charges))
	for range 3 {
		if err := l.TakeAll(ctx, charges, decisions); !errors.Is(err, ratelimit.ErrUnavailable) {
			t.Fatalf("got error %v, want one that wraps ErrUnavailable", err)
		}
		if n := l.Stats().Subjects; n != 3 {
			t.Fatalf("%d places are in use, want those of the 3 subjects before", n)
		}
	}
	for i := range 3 {
		d, err := l.Peek(ctx, fmt.Sprint("kept ", i), plan)
		if err != nil || d.Remaining() != 2 {
			t.Errorf("subject %d has %d units left and error %v, want the 2 it had", i, d.Remaining(), err)
		}
	}
	must(t, l.TakeAll(ctx, charges[:3], decisions[:3]))
	for i, left := range []int64{1, 3, 1} {
		if d := &decisions[i]; !d.Allowed() || d.Remaining() != left {
			t.Errorf("with room for all, charge %d is %v with %d left, want allowed with %d", i+1, d.Outcome, d.Remaining(), left)
		}
	}
}

func TestGroupsAllocateNothing(t *testing.T) {
	l := newLimiter(t, Options{})
	strikes := ratelimit.MustPlan("strikes", ratelimit.Penalty{Strikes: 10_000, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}, ratelimit.PerDay(1))
	take(t, l, "strikes", strikes)
	admitted := group(roomy, "a", "b", "c")
	refused := append(group(roomy, "a", "b"), ratelimit.Charge{Subject: "tight", Plan: tight, Cost: 1})
	struck := append(group(roomy, "a", "b"), ratelimit.Charge{Subject: "strikes", Plan: strikes, Cost: 1})
	decisions := make([]ratelimit.Decision, 3)
	for name, charges := range map[string][]ratelimit.Charge{"admitted": admitted, "refused": refused, "a strike": struck} {
		takeAll := func() {
			if err := l.TakeAll(ctx, charges, decisions); err != nil {
				t.Error(err)
			}
		}
		takeAll()
		if n := testing.AllocsPerRun(1000, takeAll); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}

// A subject of a group without room whose windows have ended is saved as it is then.
func TestGroupWithoutRoomIsSaved(t *testing.T) {
	clock := ratelimittest.NewClock(noonSharp())
	l := newLimiter(t, Options{MaxSubjects: 1, Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(2), ratelimit.PerHour(2))
	take(t, l, "a", plan)
	save(t, l, disk{})
	clock.Set(noonSharp().Add(time.Minute))
	charges := []ratelimit.Charge{{Subject: "a", Plan: plan, Cost: 1}, {Subject: "new", Plan: plan, Cost: 1}}
	if err := l.TakeAll(ctx, charges, make([]ratelimit.Decision, 2)); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Fatalf("got error %v, want that there is no room", err)
	}
	d := disk{}
	if save(t, l, d); len(d) != 1 {
		t.Errorf("%d records are saved, want that of a", len(d))
	}
}
