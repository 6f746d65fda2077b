package failover

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var minuteAndDay = ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(100), ratelimit.PerDay(10_000))

// A journal that is full takes nothing but what adds to a sum that it holds.
func TestJournalIsBounded(t *testing.T) {
	j := journal{bound: 100}
	other := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerHour(5))
	for i := range 120 {
		if err := j.adjust(fmt.Sprint(i), minuteAndDay, 1, began); (err == nil) != (i < 100) {
			t.Errorf("subject %d: got error %v, want one from the 101st on", i+1, err)
		}
	}
	for name, test := range map[string]struct {
		plan *ratelimit.Plan
		id   string
		room bool
	}{"the same windows": {minuteAndDay, "", true}, "other windows": {other, "", false}, "a call that the primary may have made": {minuteAndDay, "id", false}} {
		made := false
		d := engine.Uncounted(test.plan, 0, began)
		err := j.enter("7", &d, 1, test.id, began.UnixNano(), func() error { made = true; return nil })
		if room := err == nil; room != test.room || made != test.room || err != nil && !errors.Is(err, ratelimit.ErrUnavailable) {
			t.Errorf("%s: got error %v, and the local engine was called: %v, want room: %v", name, err, made, test.room)
		}
	}
	if n := j.charges; n != 100 || j.held.Load() != 100 {
		t.Errorf("%d charges of %d subjects are held, want 100", n, j.held.Load())
	}
}

// A journal that is full finds what has ended.
func TestJournalMakesRoom(t *testing.T) {
	const bound = 30 // all are looked at
	j := journal{bound: bound}
	for i := range bound {
		at := began
		if i%2 == 0 {
			at = began.Add(24 * time.Hour)
		}
		must(t, j.adjust(fmt.Sprint(i), minuteAndDay, 1, at))
	}
	for i := range bound {
		if err := j.adjust(fmt.Sprint("new", i), minuteAndDay, 1, began.Add(24*time.Hour)); (err == nil) != (i < bound/2) {
			t.Fatalf("new subject %d: %v, want room for the %d whose charges have ended", i+1, err, bound/2)
		}
	}
}

// What comes while a charge is sent is a charge of its own, and stays when the first
// one is made.
func TestJournalDuringAMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := journal{bound: 1024}
		add := func(units int64) {
			must(t, j.adjust("a", minuteAndDay, units, time.Now()))
		}
		add(3)
		add(4)
		e, _ := j.find("a")
		sent, ok := j.next(e)
		if !ok || sent.units != 7 || sent.id == "" {
			t.Fatalf("the first charge: got %+v, %v, want 7 units with an id", sent, ok)
		}
		add(-5)
		if again, ok := j.next(e); !ok || again != sent {
			t.Errorf("before it is made: got %+v, want %+v again", again, sent)
		}
		j.made(e, sent.id)
		second, ok := j.next(e)
		if !ok || second.d.Cost != 5 || second.units != 0 || second.id == sent.id {
			t.Errorf("the second charge: got %+v, %v, want 5 units given back with another id", second, ok)
		}
		j.made(e, second.id)
		if c, ok := j.next(e); ok || !j.empty() || j.charges != 0 {
			t.Errorf("after both were made: got %+v, %v, and %d charges are held, want none", c, ok, j.charges)
		}
		add(6)
		if c, ok := j.next(e); ok {
			t.Errorf("an entry that was merged: got %+v, want nothing: the subject has a new entry", c)
		}
	})
}

// If the window of a charge ends while it is sent, the answer does not remove another one.
func TestJournalAfterTheEndOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := journal{bound: 1024}
		minute := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(100))
		must(t, j.adjust("a", minute, 3, time.Now()))
		must(t, j.adjust("a", minuteAndDay, 4, time.Now()))
		e, _ := j.find("a")
		sent, _ := j.next(e)
		time.Sleep(time.Minute)
		must(t, j.adjust("a", minuteAndDay, 5, time.Now()))
		j.made(e, sent.id)
		if got, want := e.text(), "4 02.00:00:00, 5 01.00:02:00 02.00:00:00"; got != want || j.charges != 2 {
			t.Errorf("%s are left, and %d are counted, want %s", got, j.charges, want)
		}
	})
}

func TestJournalMapsShrink(t *testing.T) {
	j := journal{bound: 1 << 16}
	for i := range 10_000 {
		must(t, j.adjust(fmt.Sprint(i), minuteAndDay, 1, time.Now()))
	}
	j.primary = taker{}
	j.mergeAll(context.Background())
	if j.entries != nil {
		t.Errorf("there is still a map, of %d entries", len(j.entries))
	}
	if !j.empty() {
		t.Errorf("%d entries are held, want 0", j.held.Load())
	}
}

// A taker takes in everything.
type taker struct{}

func (taker) Adjust(context.Context, string, *ratelimit.Decision, int64, string) error { return nil }

// An entry that the primary refused waits for twice as long each time.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := journal{bound: 1024}
		must(t, j.adjust("a", minuteAndDay, 1, time.Now()))
		e, _ := j.find("a")
		for _, want := range []time.Duration{1, 2, 4, 4} {
			j.backOff(e, time.Second, 4*time.Second)
			if wait := time.Until(e.due); wait != want*time.Second {
				t.Errorf("the next wait is %v, want %v", wait, want*time.Second)
			}
		}
		if _, backsOff := j.find("a"); !backsOff {
			t.Error("the entry does not back off")
		}
		time.Sleep(24 * time.Hour)
		if j.backOff(e, time.Second, time.Second); !j.empty() {
			t.Error("an entry whose windows have ended is left")
		}
	})
}
