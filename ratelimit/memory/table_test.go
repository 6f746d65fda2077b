package memory

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// A compare-and-swap of a meter that was read before a change fails after it: no
// change leaves the meter as it was, and the count, the layout and the flags are
// those of the change.
func TestEveryChangeHasAVersionOfItsOwn(t *testing.T) {
	fresh := newMeter(7, 3) | checkConduct | stored
	seen := map[meter]bool{}
	m := fresh
	for range 1 << 14 {
		if seen[m] {
			t.Fatal("a version comes again sooner than its 14 bits demand")
		}
		seen[m] = true
		next := fresh.after(m)
		if next.count() != 7 || next.layout() != 3 || next&(checkConduct|dirty|stored) != checkConduct|stored {
			t.Fatalf("the version changes the rest of the meter: %x", uint64(next))
		}
		m = next
	}
}

// A slot that moves to another block may make room there as soon as before.
func TestMovedSlotsMakeRoom(t *testing.T) {
	table := newTable(2*blockSlots, firstWindow+1)
	for h := uint64(blockSlots-1) << 26; table.slot(blockSlots).hash() == 0; h += 2 { // two at the end of the first block
		i, _ := table.find(h)
		table.slot(i).setHash(h)
	}
	table.kept[0], table.kept[1], table.allKept = 20, 10, 10
	table.remove(blockSlots - 1)
	if table.kept[0] != 10 || table.kept[1] != 10 {
		t.Errorf("a slot moved from a block that is kept until 10 to one until 20: %v", table.kept)
	}
}

// A slot that was found for a subject may hold another one by now. The fast paths
// then decide nothing.
func TestFastPathsLookAtTheHash(t *testing.T) {
	now := noon
	l := newLimiter(t, Options{Now: func() time.Time { return now }})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(2))
	takeUnits(t, l, "a", plan, 1)
	h := l.key.sum("a")
	table := l.tables[h>>l.shift].Load()
	i, _ := table.find(h)
	d := ratelimit.Decision{Plan: plan, Cost: 1, Time: now.UnixNano()}
	if admitted, _ := l.admit(table.slot(i), l.key.sum("b"), &d, nil); admitted {
		t.Error("a request of b was charged to a")
	}
	takeUnits(t, l, "a", plan, 1)
	if v := l.inspect(table, table.slot(i), l.key.sum("b"), &d); v != unclear {
		t.Error("a request of b was refused for what a used")
	}
	if v := l.inspect(table, table.slot(i), h, &d); v != refused {
		t.Error("a request of a was not refused, although a has used up its quota")
	}
}

// The longest of all calls is one that changes the size of a table. What it moves
// is bounded, however many subjects there are.
func TestTablesStaySmall(t *testing.T) {
	race.Skip(t)
	const bound = 40 * subjectsInSegment
	l, err := New(Options{MaxSubjects: bound})
	must(t, err)
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	for i := range bound + bound/2 {
		_, err := l.Take(ctx, strconv.Itoa(i), plan, 1)
		must(t, err)
	}
	const most = 2 * subjectsInSegment
	for i := range l.tables {
		if n := l.tables[i].Load().slots; n > most {
			t.Errorf("with %d subjects table %d has %d slots, want %d at most", bound, i, n, most)
		}
	}
}

// A table gives memory back when its subjects are gone: at least four slots of ten
// are in use, or the table is one of the smallest.
func TestTablesShrink(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60))
	for name, subject := range map[string]func(hour, i int) string{
		"a few new ones come":  func(hour, i int) string { return fmt.Sprint(hour, " ", i) },
		"a few of them remain": func(_, i int) string { return strconv.Itoa(i) },
	} {
		t.Run(name, func(t *testing.T) {
			clock := ratelimittest.NewClock(noonSharp())
			l := newLimiter(t, Options{MaxSubjects: subjectsInSegment, Now: clock.Now})
			s := &l.segments[0]
			for i := range 4000 {
				takeUnits(t, l, strconv.Itoa(i), plan, 1)
			}
			if n := s.table.Load().slots; n < 4000 {
				t.Fatalf("4000 subjects are kept in %d slots", n)
			}
			for hour := range 400 {
				clock.Set(clock.Now().Add(time.Hour))
				for i := range 100 {
					takeUnits(t, l, subject(hour, i), plan, 1)
				}
			}
			if n := s.table.Load().slots; s.used > 400 || n > 2*minSlots && s.used*100 < n*emptiest {
				t.Errorf("%d of %d slots are in use days after all but a few subjects left, want %d%% at least, and 400 at most", s.used, n, emptiest)
			}
		})
	}
}

// What an engine remembers for Save is bounded, although Save is never called, or
// fails each time.
func TestForgottenKeysAreBounded(t *testing.T) {
	race.Skip(t)
	const bound = 100
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(1))
	full := errors.New("disk full")
	for name, often := range map[string]func(l *Limiter){
		"no save":      func(*Limiter) {},
		"failed saves": func(l *Limiter) { _ = l.Save(func([]Record) error { return full }) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, Options{MaxSubjects: bound + 1})
			must(t, l.Load([]Record{{Key: 2, Data: append(l.key.dataHead(2), 120, 2, 2, 254, 255, 255, 255, 15), Expires: 1<<32 - 1}}))
			for i := range 200 * bound {
				takeUnits(t, l, fmt.Sprint(i), plan, 1)
				if (i+1)%bound > 0 {
					continue
				}
				often(l)
				for j := range bound {
					must(t, l.Reset(ctx, fmt.Sprint(i-j)))
				}
			}
			if n := len(l.segments[0].forgotten); n > maxForgotten {
				t.Errorf("%d forgotten keys are remembered, want %d at most", n, maxForgotten)
			}
			if n := len(l.segments[0].forgotten); name == "no save" && n > bound {
				t.Errorf("%d forgotten keys are remembered, of which one was ever loaded", n)
			}
		})
	}
}

// Combinations of windows come and go with the accounts that have them.
func TestLayoutsAreReplaced(t *testing.T) {
	race.Skip(t)
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, Options{Now: clock.Now, MaxSubjects: 10_000})
	var plans []*ratelimit.Plan
	for i := range 16 {
		plans = append(plans, ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.Quota{Limit: 100, Window: time.Duration(i+1) * time.Minute}))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 40_000 {
		if i%1000 == 0 {
			clock.Set(clock.Now().Add(time.Hour))
		}
		subject := fmt.Sprint(i)
		for _, p := range r.Perm(16)[:8] {
			takeUnits(t, l, subject, plans[p], 1)
		}
	}
	if n := l.layouts.used; n < limitLayouts {
		t.Fatalf("the test met %d combinations of windows, and no number was used twice", n)
	}
	total := int64(0)
	for i := range l.layouts.used {
		total += l.layouts.get(i).accounts.Load()
	}
	if kept := l.Stats().Subjects; total != kept {
		t.Errorf("%d accounts have layouts, and %d are kept", total, kept)
	}
}

// Some accounts with many windows make the slots of their segments wide. When
// they are gone, the slots are narrow again.
func TestSlotsBecomeNarrowAgain(t *testing.T) {
	race.Skip(t)
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, Options{Now: clock.Now, MaxSubjects: 100_000})
	two := ratelimit.MustPlan("two", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	var wide [2]*ratelimit.Plan
	for i := range wide {
		var quotas []ratelimit.Quota
		for j := range engine.MaxQuotas {
			quotas = append(quotas, ratelimit.Quota{Limit: 100, Window: time.Duration(2+i+2*j) * time.Hour})
		}
		wide[i] = ratelimit.MustPlan("wide", ratelimit.Penalty{}, quotas...)
	}
	strides := func() (widest uint64) {
		for i := range l.tables {
			widest = max(widest, l.tables[i].Load().stride)
		}
		return widest
	}
	for i := range 400 {
		takeUnits(t, l, fmt.Sprint("wide ", i), wide[0], 1)
		takeUnits(t, l, fmt.Sprint("wide ", i), wide[1], 1)
	}
	if strides() != firstWindow+maxWindows {
		t.Fatalf("slots of %d words hold accounts with %d windows", strides(), maxWindows)
	}
	for day := range 3 {
		clock.Set(clock.Now().Add(24 * time.Hour))
		for i := range 30_000 {
			takeUnits(t, l, fmt.Sprint("day ", day, " ", i), two, 1)
		}
	}
	if got := strides(); got != firstWindow+2 {
		t.Errorf("slots have %d words three days later, want %d", got, firstWindow+2)
	}
}

// The keys 0 and 1 mean an empty slot and its conduct: no subject has them. The
// smallest key of a subject is 2.
func TestLoadOfTheSmallestKeys(t *testing.T) {
	l := newLimiter(t, Options{Now: noonSharp})
	for key, want := range []int64{0, 0, 1} {
		data := append(l.key.dataHead(uint64(key)), 120, 2, 2, 254, 255, 255, 255, 15)
		if err := l.Load([]Record{{Key: uint64(key), Data: data, Expires: 1<<32 - 1}}); err != nil {
			t.Errorf("key %d: %v", key, err)
		}
		if kept := l.Stats().Subjects; kept != want {
			t.Errorf("after key %d: %d subjects are kept, want %d", key, kept, want)
		}
	}
}

// A layout may be replaced by one with more windows while a request still reads
// it. The request must not read beyond the slot.
func TestLayoutThatIsReplacedWhileItIsRead(t *testing.T) {
	l := newLimiter(t, Options{Now: noonSharp})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(10), ratelimit.PerHour(10))
	take(t, l, "a", plan)
	h := l.key.sum("a")
	table := l.tables[h>>l.shift].Load()
	i, _ := table.find(h)
	slot := table.slot(i)
	number := slot.meter().layout()
	larger := &sharedLayout{layout: l.layouts.get(number).layout}
	for ; larger.n < maxWindows; larger.n++ {
		larger.kinds[larger.n], larger.limits[larger.n] = fixedwindow.Kind(time.Duration(24+larger.n)*time.Hour), 10
	}
	(*l.layouts.shared.Load())[number].Store(larger)
	d := ratelimit.Decision{Plan: plan, Cost: 1, Time: noonSharp().UnixNano()}
	l.admit(slot, h, &d, nil)
	l.inspect(table, slot, h, &d)
}

func oneWindow(i int) layout {
	var a account
	a.openWindow(nil, window{kind: fixedwindow.KindOf(int64(i + 1)), limit: 8})
	return a.layout()
}

// Layouts take no more memory than twice what they need. An engine with few plans
// needs few.
func TestLayoutsTakeLittleMemory(t *testing.T) {
	l := newLimiter(t, Options{})
	for i := range 100 {
		_, err := l.layouts.add(oneWindow(i))
		must(t, err)
		if n := len(*l.layouts.shared.Load()); n <= i || n > max(2*i, 8) {
			t.Fatalf("there is memory for %d layouts, and %d are in use", n, i+1)
		}
	}
}

// When all numbers are in use, an account of another combination gets the number
// of the same windows with the smallest limits, under which it is kept, if there
// is one. Otherwise the engine cannot decide, and counts nothing.
func TestWithoutAFreeNumber(t *testing.T) {
	l := newLimiter(t, Options{Now: func() time.Time { return noon }})
	kept := oneWindow(59)
	kept.limits[0] = 1
	acquire := func(want layout) {
		l.layouts.get(l.layouts.acquire(want, maxLayouts)).accounts.Add(1)
	}
	acquire(kept)
	for i := 100; l.layouts.used < maxLayouts; i++ {
		acquire(oneWindow(i))
	}
	minute := ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	for want := int64(9); want >= 0; want-- {
		if d, err := l.Take(ctx, "a", minute, 1); err != nil || d.Remaining() != want {
			t.Fatalf("%d left, %v; want %d", d.Remaining(), err, want)
		}
	}
	if d, err := l.Take(ctx, "a", minute, 1); err != nil || d.Allowed() {
		t.Errorf("after ten requests of ten: %v, %v, want limited", d.Outcome, err)
	}
	hour := ratelimit.MustPlan("hour", ratelimit.Penalty{}, ratelimit.PerHour(10))
	for range 2 {
		if d, err := l.Take(ctx, "b", hour, 1); !errors.Is(err, ratelimit.ErrUnavailable) {
			t.Errorf("a window without a number: %+v, %v, want ErrUnavailable", d, err)
		}
	}
	if _, err := l.Take(ctx, "a", hour, 1); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("a window without a number: error %v, want ErrUnavailable", err)
	}
	if d, err := l.Take(ctx, "a", minute, 1); err != nil || d.Allowed() {
		t.Errorf("after a request that was not decided: %v, %v, want limited as before", d.Outcome, err)
	}
	if n := l.Stats().Subjects; n != 1 {
		t.Errorf("%d subjects are kept, want a alone", n)
	}
}

// Accounts of the same windows have one layout, whatever windows they had before.
func TestClosedWindowsLeaveTheLayout(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(8), ratelimit.PerHour(8))
	var a, b account
	a.roll(0, plan)
	b.roll(0, plan)
	b.openWindow(plan, window{kind: fixedwindow.KindOf(1), limit: 8})
	b.expire(0)
	b.roll(0, plan)
	if a.layout() != b.layout() {
		t.Errorf("never had another window: %+v\nhad one:                  %+v", a.layout(), b.layout())
	}
}
