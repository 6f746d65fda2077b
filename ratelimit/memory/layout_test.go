package memory

import (
	"errors"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

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
		larger.lengths[larger.n], larger.limits[larger.n] = time.Duration(24+larger.n)*time.Hour, 10
	}
	(*l.layouts.shared.Load())[number].Store(larger)
	d := ratelimit.Decision{Plan: plan, Cost: 1, Time: noonSharp().UnixNano()}
	l.admit(slot, h, &d, nil)
	l.look(table, slot, h, &d)
}

func oneWindow(i int) layout {
	var a account
	a.insert(window{length: time.Duration(i+1) * time.Second, limit: 8})
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
// of the same windows with the smallest limits, under which it is held, if there
// is one. Otherwise the engine cannot decide, and counts nothing.
func TestWithoutAFreeNumber(t *testing.T) {
	l := newLimiter(t, Options{})
	held := oneWindow(59)
	held.limits[0] = 1
	acquire := func(want layout) {
		l.layouts.get(l.layouts.acquire(want, maxLayouts)).accounts.Add(1)
	}
	acquire(held)
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
		t.Errorf("%d subjects are held, want a alone", n)
	}
}

// Accounts of the same windows have one layout, whatever windows they had before.
func TestClosedWindowsLeaveTheLayout(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(8), ratelimit.PerHour(8))
	var a, b account
	a.roll(0, plan)
	b.roll(0, plan)
	b.insert(window{length: time.Second, limit: 8})
	b.remove(0)
	if a.layout() != b.layout() {
		t.Errorf("never had another window: %+v\nhad one:                  %+v", a.layout(), b.layout())
	}
}
