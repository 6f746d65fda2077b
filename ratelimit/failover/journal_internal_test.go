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

// A journal that is full takes nothing but what is of a subject that it holds.
func TestJournalIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := journal{bound: 100}
		for i := range 120 {
			if err := j.adjust(fmt.Sprint(i), minuteAndDay, 1); (err == nil) != (i < 100) {
				t.Errorf("subject %d: got error %v, want one from the 101st on", i+1, err)
			}
		}
		smooth := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerDay(5).Smooth(5))
		for name, test := range map[string]struct {
			subject string
			plan    *ratelimit.Plan
			id      string
			room    bool
		}{
			"the same windows":          {"7", minuteAndDay, "", true},
			"another window":            {"7", ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMonth(5)), "", true},
			"a call":                    {"7", minuteAndDay, "id", true},
			"another subject":           {"107", minuteAndDay, "", false},
			"a call of another subject": {"107", minuteAndDay, "id", false},
			"another subject, of which nothing is kept": {"107", smooth, "", true},
		} {
			d := engine.Uncounted(test.plan, 0, time.Now())
			err := j.enter(test.subject, &d, 1, test.id)
			if room := err == nil; room != test.room || err != nil && !errors.Is(err, ratelimit.ErrUnavailable) {
				t.Errorf("%s: got error %v, want room: %v", name, err, test.room)
			}
		}
		if n := len(j.entries); n != 100 || j.size.Load() != 100 {
			t.Errorf("%d and %d subjects are held, want 100", n, j.size.Load())
		}
	})
}

// A journal that is full finds what has ended.
func TestJournalMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 30 // all are looked at
		j := journal{bound: bound}
		minute, day := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(5)), ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerDay(5))
		for i := range bound {
			must(t, j.adjust(fmt.Sprint(i), []*ratelimit.Plan{minute, day}[i%2], 1))
		}
		time.Sleep(time.Minute)
		for i := range bound {
			if err := j.adjust(fmt.Sprint("new", i), day, 1); (err == nil) != (i < bound/2) {
				t.Fatalf("new subject %d: %v, want room for the %d whose windows have ended", i+1, err, bound/2)
			}
		}
	})
}

// What comes while a call is made is summed up for another one, and stays when the first one
// is made.
func TestJournalDuringAMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := journal{bound: 1024}
		add := func(units int64) {
			must(t, j.adjust("a", minuteAndDay, units))
		}
		add(3)
		add(4)
		e := j.entries["a"]
		sent, ok := j.next(e)
		if !ok || sent.units != 7 || sent.id == "" {
			t.Fatalf("the first call: got %+v, %v, want 7 units with an id", sent, ok)
		}
		add(-5)
		if again, ok := j.next(e); !ok || again != sent {
			t.Errorf("before it is made: got %+v, want %+v again", again, sent)
		}
		j.made(e, sent.id)
		second, ok := j.next(e)
		if !ok || second.d.Cost != 5 || second.units != 0 || second.id == sent.id {
			t.Errorf("the second call: got %+v, %v, want 5 units given back with another id", second, ok)
		}
		j.made(e, second.id)
		if c, ok := j.next(e); ok || !j.empty() {
			t.Errorf("after both were made: got %+v, want none", c)
		}
		add(6)
		if c, ok := j.next(e); ok {
			t.Errorf("an entry that was merged: got %+v, want nothing: the subject has a new entry", c)
		}
	})
}

// If the windows of a call end while it is made, the answer does not remove another one.
func TestJournalAfterTheEndOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := journal{bound: 1024}
		must(t, j.adjust("a", ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(100)), 3))
		e := j.entries["a"]
		sent, _ := j.next(e)
		d := engine.Uncounted(minuteAndDay, 0, time.Now())
		must(t, j.enter("a", &d, 4, "id"))
		time.Sleep(time.Minute)
		must(t, j.adjust("a", minuteAndDay, 5))
		j.made(e, sent.id)
		if got, want := e.text(), "call 4, 5 01.00:02:00, 5 02.00:00:00"; got != want {
			t.Errorf("%s are left, want %s", got, want)
		}
	})
}

func TestJournalMapsShrink(t *testing.T) {
	j := journal{bound: 1 << 16}
	for i := range 10_000 {
		must(t, j.adjust(fmt.Sprint(i), minuteAndDay, 1))
	}
	j.primary = taker{}
	j.mergeAll(context.Background())
	if j.entries != nil {
		t.Errorf("there is still a map, of %d entries", len(j.entries))
	}
	if !j.empty() {
		t.Errorf("%d entries are held, want 0", j.size.Load())
	}
}

// A taker takes in everything.
type taker struct{}

func (taker) Adjust(context.Context, string, *ratelimit.Decision, int64, string) error { return nil }
