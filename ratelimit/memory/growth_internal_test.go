package memory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

func internalLimiter(t testing.TB, opts Options) *Limiter {
	t.Helper()
	l, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func internalTake(t testing.TB, l *Limiter, subject string, plan *ratelimit.Plan, cost int64) {
	t.Helper()
	if _, err := l.Take(context.Background(), subject, plan, cost); err != nil {
		t.Fatalf("Take(%q): %v", subject, err)
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
			l := internalLimiter(t, Options{MaxSubjects: bound + 1})
			if err := l.Load([]Record{{Key: 2, Data: append(l.key.dataHead(2), 120, 2, 2, 254, 255, 255, 255, 15), Expires: 1<<32 - 1}}); err != nil {
				t.Fatal(err)
			}
			for i := range 200 * bound {
				internalTake(t, l, fmt.Sprint(i), plan, 1)
				if (i+1)%bound > 0 {
					continue
				}
				often(l)
				for j := range bound {
					if err := l.Reset(context.Background(), fmt.Sprint(i-j)); err != nil {
						t.Fatal(err)
					}
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
	clock := enginetest.NewClock(time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC))
	l := internalLimiter(t, Options{Now: clock.Now, MaxSubjects: 10_000})
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
			internalTake(t, l, subject, plans[p], 1)
		}
	}
	if n := len(l.layouts.segments); n < limitLayouts {
		t.Fatalf("the test met %d combinations of windows, and no number was used twice", n)
	}
	total := 0
	for i := range l.segments {
		for _, n := range l.segments[i].layouts.accounts {
			total += n
		}
	}
	if held := l.Stats().Subjects; int64(total) != held {
		t.Errorf("%d accounts have layouts, and %d are held", total, held)
	}
}

// Some accounts with many windows make the slots of their segments wide. When
// they are gone, the slots are narrow again.
func TestSlotsBecomeNarrowAgain(t *testing.T) {
	race.Skip(t)
	clock := enginetest.NewClock(time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC))
	l := internalLimiter(t, Options{Now: clock.Now, MaxSubjects: 100_000})
	two := ratelimit.MustPlan("two", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	var wide [2]*ratelimit.Plan
	for i := range wide {
		var quotas []ratelimit.Quota
		for j := range 4 {
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
		internalTake(t, l, fmt.Sprint("wide ", i), wide[0], 1)
		internalTake(t, l, fmt.Sprint("wide ", i), wide[1], 1)
	}
	if strides() != firstWindow+maxWindows {
		t.Fatalf("slots of %d words hold accounts with %d windows", strides(), maxWindows)
	}
	for day := range 3 {
		clock.Set(clock.Now().Add(24 * time.Hour))
		for i := range 30_000 {
			internalTake(t, l, fmt.Sprint("day ", day, " ", i), two, 1)
		}
	}
	if got := strides(); got != firstWindow+2 {
		t.Errorf("slots have %d words three days later, want %d", got, firstWindow+2)
	}
}

// The keys 0 and 1 mean an empty slot and its record: no subject has them. The
// smallest key of a subject is 2.
func TestLoadOfTheSmallestKeys(t *testing.T) {
	l := internalLimiter(t, Options{Now: noonSharp})
	for key, want := range []int64{0, 0, 1} {
		data := append(l.key.dataHead(uint64(key)), 120, 2, 2, 254, 255, 255, 255, 15)
		if err := l.Load([]Record{{Key: uint64(key), Data: data, Expires: 1<<32 - 1}}); err != nil {
			t.Errorf("key %d: %v", key, err)
		}
		if held := l.Stats().Subjects; held != want {
			t.Errorf("after key %d: %d subjects are held, want %d", key, held, want)
		}
	}
}
