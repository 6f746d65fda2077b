package memory

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

func oneWindow(i int) layout { return oneWindowAccount(i).layout() }

func oneWindowAccount(i int) *account {
	var a account
	a.insert(window{length: time.Duration(i+1) * time.Second, limit: 8})
	return &a
}

// A number is free again when the last account that had it is gone, whatever the
// number and the order in which accounts of several segments came and went.
func TestNumbersComeBack(t *testing.T) {
	l := internalLimiter(t, Options{MaxSubjects: 2 * subjectsInSegment})
	const layouts, accounts = 20, 3
	for i := range layouts {
		for range accounts {
			for s := range l.segments {
				if number, err := l.segments[s].layouts.add(oneWindowAccount(i)); err != nil || number != i {
					t.Fatalf("layout %d has number %d, %v", i, number, err)
				}
			}
		}
		if n := l.layouts.segments[i]; n != len(l.segments) {
			t.Errorf("accounts of %d segments have number %d, and %d are counted", len(l.segments), i, n)
		}
	}
	for i := range layouts {
		for range accounts {
			for s := range l.segments {
				l.segments[s].layouts.remove(i)
			}
		}
		if n := l.layouts.segments[i]; n != 0 {
			t.Errorf("no account has number %d, and %d segments are counted", i, n)
		}
	}
	for s := range l.segments {
		if n := len(l.segments[s].layouts.accounts); n != 0 {
			t.Errorf("segment %d keeps %d numbers without an account", s, n)
		}
	}
}

// Layouts take no more memory than twice what they need. An engine with few plans
// needs few.
func TestLayoutsTakeLittleMemory(t *testing.T) {
	l := internalLimiter(t, Options{})
	for i := range 100 {
		if _, err := l.layouts.acquire(oneWindow(i), maxLayouts); err != nil {
			t.Fatal(err)
		}
		if n := len(*l.layouts.shared.Load()); n <= i || n > max(2*i, 8) {
			t.Fatalf("there is memory for %d layouts, and %d are in use", n, i+1)
		}
	}
}

// When all numbers are in use, an account of another combination gets the number
// of the same windows with the smallest limits, under which it is held, if there
// is one. Otherwise the engine cannot decide, and counts nothing.
func TestWithoutAFreeNumber(t *testing.T) {
	l := internalLimiter(t, Options{})
	held := oneWindow(59)
	held.limits[0] = 1
	if _, err := l.layouts.acquire(held, maxLayouts); err != nil {
		t.Fatal(err)
	}
	for i := 100; len(l.layouts.segments) < maxLayouts; i++ {
		if _, err := l.layouts.acquire(oneWindow(i), maxLayouts); err != nil {
			t.Fatal(err)
		}
	}
	minute := ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	for want := int64(9); want >= 0; want-- {
		if d, err := l.Take(context.Background(), "a", minute, 1); err != nil || d.Remaining() != want {
			t.Fatalf("%d left, %v; want %d", d.Remaining(), err, want)
		}
	}
	if d, err := l.Take(context.Background(), "a", minute, 1); err != nil || d.Allowed() {
		t.Errorf("after ten requests of ten: %v, %v, want limited", d.Outcome, err)
	}
	hour := ratelimit.MustPlan("hour", ratelimit.Penalty{}, ratelimit.PerHour(10))
	for range 2 {
		if d, err := l.Take(context.Background(), "b", hour, 1); !errors.Is(err, ratelimit.ErrUnavailable) {
			t.Errorf("a window without a number: %+v, %v, want ErrUnavailable", d, err)
		}
	}
	if _, err := l.Take(context.Background(), "a", hour, 1); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("a window without a number: error %v, want ErrUnavailable", err)
	}
	if d, err := l.Take(context.Background(), "a", minute, 1); err != nil || d.Allowed() {
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
