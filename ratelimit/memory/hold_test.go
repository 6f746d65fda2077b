package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var (
	wideDay   = ratelimit.MustPlan("wide", ratelimit.Penalty{}, ratelimit.PerDay(math.MaxUint32*4))
	smoothDay = ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerHour(60).Smooth(60), ratelimit.PerDay(1000))
	thousands = ratelimit.MustPlan("thousands", ratelimit.Penalty{}, ratelimit.PerHour(1000), ratelimit.PerDay(1000))
)

// hold takes units under an id.
func hold(t *testing.T, l *Limiter, id, subject string, plan *ratelimit.Plan, cost int64) ratelimit.Decision {
	t.Helper()
	d, err := l.Hold(id, time.Minute).Take(ctx, subject, plan, cost)
	if err != nil || !d.Allowed() {
		t.Fatalf("%s: %v, %v", subject, d.Outcome, err)
	}
	return d
}

// usedOf returns what is used of each quota.
func usedOf(t *testing.T, l *Limiter, subject string, plan *ratelimit.Plan) string {
	t.Helper()
	d, err := l.Peek(ctx, subject, plan)
	must(t, err)
	var used []int64
	for i := range engine.Of(plan).Len() {
		used = append(used, plan.Numbers().Quota(i).AtOnce()-d.States[i].Remaining)
	}
	return fmt.Sprint(used)
}

// reloaded returns an engine that has loaded what yields of saved have passed to it.
func reloaded(t *testing.T, l *Limiter, each func()) *Limiter {
	t.Helper()
	again := newLimiter(t, Options{Secret: l.Secret(), Now: func() time.Time { return noon }})
	for portion := range l.saved() {
		must(t, again.Load(portion))
		each()
	}
	return again
}

// What is held when the file is saved is not in it, wherever it was charged. All else is.
func TestFileWithoutHolds(t *testing.T) {
	for _, test := range []struct {
		name         string
		plan         *ratelimit.Plan
		used, loaded string
		run          func(l *Limiter)
	}{
		{"held", thousands, "[130 130]", "[30 30]", func(l *Limiter) {
			takeUnits(t, l, "a", thousands, 30)
			hold(t, l, "1", "a", thousands, 100)
		}},
		{"held twice, and by others", thousands, "[130 130]", "[5 5]", func(l *Limiter) {
			hold(t, l, "1", "a", thousands, 100)
			hold(t, l, "2", "a", thousands, 25)
			hold(t, l, "1", "b", thousands, 900)
			takeUnits(t, l, "a", thousands, 5)
		}},
		{"settled higher", thousands, "[150 150]", "[150 150]", func(l *Limiter) {
			d := hold(t, l, "1", "a", thousands, 100)
			must(t, l.Adjust(ctx, "a", &d, 150, "1"))
		}},
		{"settled at the same", thousands, "[110 110]", "[100 100]", func(l *Limiter) {
			d := hold(t, l, "1", "a", thousands, 100)
			hold(t, l, "2", "a", thousands, 10)
			must(t, l.Adjust(ctx, "a", &d, 100, "1"))
		}},
		{"settled with another id", thousands, "[0 0]", "[0 0]", func(l *Limiter) {
			d := hold(t, l, "1", "a", thousands, 100)
			must(t, l.Adjust(ctx, "a", &d, 0, "2"))
		}},
		{"in windows of another plan", thousands, "[70 70]", "[20 20]", func(l *Limiter) {
			takeUnits(t, l, "a", thousands, 20)
			hold(t, l, "1", "a", wideDay, 50)
		}},
		{"2^32 units", wideDay, "[4294967299]", "[4]", func(l *Limiter) {
			takeUnits(t, l, "a", wideDay, 4)
			hold(t, l, "1", "a", wideDay, math.MaxUint32)
		}},
		{"a smooth quota", smoothDay, "[7 7]", "[7 2]", func(l *Limiter) {
			takeUnits(t, l, "a", smoothDay, 2)
			hold(t, l, "1", "a", smoothDay, 5)
		}},
		{"a group", thousands, "[30 30]", "[0 0]", func(l *Limiter) {
			charges := []ratelimit.Charge{{Subject: "b", Plan: thousands, Cost: 1}, {Subject: "a", Plan: thousands, Cost: 30}}
			var d [2]ratelimit.Decision
			must(t, l.Hold("1", time.Minute).(engine.MultiTaker).TakeAll(ctx, charges, d[:]))
		}},
		{"a denial", thousands, "[1000 1000]", "[1000 1000]", func(l *Limiter) {
			takeUnits(t, l, "a", thousands, 1000)
			_, err := l.Hold("1", time.Minute).Take(ctx, "a", thousands, 100)
			must(t, err)
		}},
		{"reset", thousands, "[0 0]", "[0 0]", func(l *Limiter) {
			hold(t, l, "1", "a", thousands, 100)
			must(t, l.Reset(ctx, "a"))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "usage")
			l, save, closeFile := open(t, file)
			must(t, save()) // there is something to change
			test.run(l)
			if got := usedOf(t, l, "a", test.plan); got != test.used {
				t.Errorf("used %s, want %s", got, test.used)
			}
			must(t, save())
			killed(t, file, closeFile, func() {})
			l, _, _ = open(t, file)
			if got := usedOf(t, l, "a", test.plan); got != test.loaded {
				t.Errorf("loaded %s, want %s", got, test.loaded)
			}
		})
	}
}

// A hold that ends is written by the next save, also if it costs what it was charged.
func TestFileAfterAHold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "usage")
	l, save, closeFile := open(t, file)
	d := hold(t, l, "1", "a", thousands, 100)
	must(t, save())
	must(t, l.Adjust(ctx, "a", &d, 100, "1"))
	must(t, save())
	killed(t, file, closeFile, func() {})
	l, save, _ = open(t, file)
	if got := usedOf(t, l, "a", thousands); got != "[100 100]" {
		t.Errorf("loaded %s, want the settled units", got)
	}
	must(t, os.Remove(file))
	must(t, l.Adjust(ctx, "a", &d, 100, "1")) // of no hold, which changes nothing
	must(t, save())
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an adjustment that changes nothing: %v, want no new file", err)
	}
}

// A hold that begins or ends while a save runs is in the file, or not, as a whole.
func TestHoldsDuringASave(t *testing.T) {
	l, _, _ := open(t, filepath.Join(t.TempDir(), "usage"))
	before := hold(t, l, "1", "ends", thousands, 100)
	during := func() {
		must(t, l.Adjust(ctx, "ends", &before, 70, "1"))
		hold(t, l, "3", "begins", thousands, 100)
		d := hold(t, l, "4", "both", thousands, 100)
		must(t, l.Adjust(ctx, "both", &d, 40, "4"))
	}
	again := reloaded(t, l, sync.OnceFunc(during))
	must(t, l.Reset(ctx, "begins"))
	forgotten := 0
	for portion := range l.portions(true) {
		for _, r := range portion {
			if len(r.Data) == 0 {
				forgotten++
			}
		}
	}
	if forgotten != 1 {
		t.Errorf("the next save removes %d records, want that of the subject which was reset", forgotten)
	}
	for subject, want := range map[string]string{"ends": "[70 70]", "begins": "[0 0]", "both": "[40 40]"} {
		if got := usedOf(t, again, subject, thousands); got != want {
			t.Errorf("%s: loaded %s, want %s", subject, got, want)
		}
	}
}

// Whatever requests do meanwhile, each save has whole costs: never an estimate, or a part of one.
func TestHoldsAndSaves(t *testing.T) {
	l, _, _ := open(t, filepath.Join(t.TempDir(), "usage"))
	var workers sync.WaitGroup
	var stop atomic.Bool
	for i := range 4 {
		workers.Go(func() {
			subject := fmt.Sprint(i % 2)
			for n := 0; !stop.Load(); n++ {
				id := fmt.Sprint(i, " ", n)
				d, err := l.Hold(id, time.Minute).Take(ctx, subject, wideDay, 10)
				if err == nil {
					err = errors.Join(l.Adjust(ctx, subject, &d, 3, id), func() error {
						_, err := l.Take(ctx, subject, wideDay, 3)
						return err
					}())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 50 {
		again := reloaded(t, l, func() {})
		for _, subject := range []string{"0", "1"} {
			d, err := again.Peek(ctx, subject, wideDay)
			if used := d.Limit() - d.Remaining(); err != nil || used%3 != 0 {
				t.Errorf("loaded %d units, want a multiple of 3; error %v", used, err)
			}
		}
	}
	stop.Store(true)
	workers.Wait()
}

// A save does not come between the end of a hold and the change of its account.
func TestSaveWaitsForTheEndOfAHold(t *testing.T) {
	l, _, _ := open(t, filepath.Join(t.TempDir(), "usage"))
	d := hold(t, l, "1", "a", thousands, 100)
	s := l.lock("a")
	var settling sync.WaitGroup
	settling.Go(func() { _ = l.Adjust(ctx, "a", &d, 30, "1") })
	for live := 1; live > 0 && l.holds.mu.TryLock(); runtime.Gosched() {
		live = len(l.holds.live)
		l.holds.mu.Unlock()
	}
	if l.holds.mu.TryLock() {
		l.holds.mu.Unlock()
		t.Error("a save can see the account without the hold, and with the units that are given back")
	}
	s.unlock()
	settling.Wait()
}

// Without a file holds are charges like others, and nothing is noted of them.
func TestHoldsWithoutAFile(t *testing.T) {
	l := newLimiter(t, Options{Now: func() time.Time { return noon }})
	d := hold(t, l, "1", "a", thousands, 100)
	must(t, l.Adjust(ctx, "a", &d, 30, "1"))
	if got := usedOf(t, l, "a", thousands); got != "[30 30]" || l.holds.live != nil {
		t.Errorf("used %s and noted %v, want 30 of both and nothing", got, l.holds.live)
	}
}

// What is noted of holds is removed when they end, and of requests that are not charged nothing is.
func TestHoldsAreForgotten(t *testing.T) {
	l, save, _ := open(t, filepath.Join(t.TempDir(), "usage"))
	must(t, save())
	unlimited := ratelimit.UnlimitedPlan("all")
	takeUnits(t, l, "full", keptPlan, 10)
	for i := range 100 {
		id := fmt.Sprint(i)
		d := hold(t, l, id, "a", thousands, 1)
		must(t, l.Adjust(ctx, "a", &d, int64(i%3), id))
		hold(t, l, id, "b", unlimited, 1)
		if _, err := l.Hold(id, time.Minute).Take(ctx, "full", keptPlan, 1); err != nil {
			t.Fatal(err)
		}
		all := []ratelimit.Charge{{Subject: "a", Plan: thousands, Cost: 1}}
		if err := l.Hold(id, time.Minute).(engine.MultiTaker).TakeAll(ctx, all, []ratelimit.Decision{d, d}); err == nil {
			t.Fatal("two decisions were made about one charge")
		}
	}
	if len(l.holds.live) != 0 || l.holds.ended != nil {
		t.Errorf("noted %d accounts with holds, and %d whose holds have ended, want none", len(l.holds.live), len(l.holds.ended))
	}
}
