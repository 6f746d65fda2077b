package failover

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

var plan = ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(100), ratelimit.PerDay(10_000))

// A flood of fresh subjects drops other fresh ones, and none that has used more.
func TestJournalUnderAFlood(t *testing.T) {
	var j journal
	j.init(1024)
	now := began.UnixNano()
	const heavy = 300
	for i := range heavy {
		for range 10 {
			j.add(fmt.Sprint("heavy ", i), plan, 1, now)
		}
	}
	for i := range 50_000 {
		j.add(fmt.Sprint("fresh ", i), plan, 1, now)
	}
	if n := j.held.Load(); n > 1024 {
		t.Errorf("%d subjects are held, want at most 1024", n)
	}
	if j.lost.Load() < 50_000-1024 {
		t.Errorf("%d were counted as lost, want all that had no room", j.lost.Load())
	}
	kept := 0
	for i := range heavy {
		if e, _ := j.find(fmt.Sprint("heavy ", i)); e != nil && e.charges[0].units[0] == 10 {
			kept++
		}
	}
	if kept != heavy {
		t.Errorf("%d of %d subjects that used much are left", kept, heavy)
	}
}

// Entries whose windows have ended make room without a loss.
func TestJournalDropsWhatHasEnded(t *testing.T) {
	var j journal
	j.init(1024)
	for day := range 15 {
		now := began.Add(time.Duration(day) * 24 * time.Hour).UnixNano()
		for i := range 1000 {
			j.add(fmt.Sprint(day, i%100), plan, 1, now)
		}
		if lost := j.lost.Load(); lost != 0 {
			t.Fatalf("on day %d %d subjects were lost, although those of other days mean nothing any more", day, lost)
		}
	}
	if n := j.held.Load(); n > 1024 {
		t.Errorf("%d subjects are held, want at most 1024", n)
	}
}

// What comes while a charge is sent is a charge of its own, and stays when the first
// one is made.
func TestJournalDuringAMerge(t *testing.T) {
	var j journal
	j.init(1024)
	add := func(units int64) { j.add("a", plan, units, began.UnixNano()) }
	add(3)
	add(4)
	e, _ := j.find("a")
	sent, ok := j.next(e)
	if !ok || sent.units[0] != 7 || sent.id == "" {
		t.Fatalf("the first charge: got %+v, %v, want 7 units with an id", sent, ok)
	}
	add(5)
	if again, ok := j.next(e); !ok || again != sent {
		t.Errorf("before it is made: got %+v, want %+v again", again, sent)
	}
	j.made(e)
	second, ok := j.next(e)
	if !ok || second.units[0] != 5 || second.id == sent.id {
		t.Errorf("the second charge: got %+v, %v, want 5 units with another id", second, ok)
	}
	j.made(e)
	if c, ok := j.next(e); ok || !j.empty() {
		t.Errorf("after both were made: got %+v, %v, and %d entries are held, want none", c, ok, j.held.Load())
	}
	add(6)
	if c, ok := j.next(e); ok {
		t.Errorf("an entry that was merged: got %+v, want nothing: the subject has a new entry", c)
	}
}

// A charge that was refunded as a whole is not sent.
func TestJournalAfterARefund(t *testing.T) {
	var j journal
	j.init(1024)
	j.add("a", plan, 3, began.UnixNano())
	e, _ := j.find("a")
	if !j.credit("a", plan, 3, began.UnixNano()) {
		t.Error("the units were not in the journal")
	}
	if c, ok := j.next(e); ok || !j.empty() {
		t.Errorf("got %+v to send, want nothing and an empty journal", c)
	}
}

func TestJournalMapsShrink(t *testing.T) {
	var j journal
	j.init(1 << 16)
	for i := range 10_000 {
		j.add(fmt.Sprint(i), plan, 1, began.UnixNano())
	}
	m := merger{primary: taker{}, journal: &j}
	m.mergeAll(context.Background())
	for i := range j.shards {
		if s := &j.shards[i]; s.entries != nil {
			t.Errorf("shard %d still has a map of %d entries", i, len(s.entries))
		}
	}
	if n := j.merged.Load(); !j.empty() || n != 10_000 {
		t.Errorf("%d entries are held and %d were merged, want 0 and 10000", j.held.Load(), n)
	}
}

// A taker takes in everything.
type taker struct{}

func (taker) AddUsage(context.Context, string, *ratelimit.Plan, [ratelimit.MaxQuotas]int64, time.Time) error {
	return nil
}

// An entry that the primary refused waits for twice as long each time.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		j.init(1024)
		j.add("a", plan, 1, time.Now().UnixNano())
		e, _ := j.find("a")
		for _, want := range []time.Duration{1, 2, 4, 4} {
			j.backOff(e, time.Second, 4*time.Second)
			if wait := time.Until(e.due); wait != want*time.Second {
				t.Errorf("after %d failures the wait is %v, want %v", e.failures, wait, want*time.Second)
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

// An entry may be dropped while its charge is under way, and the subject go on in a new
// one: a request brings both.
func TestBringAfterADrop(t *testing.T) {
	d := &dropper{}
	d.journal.init(1024)
	d.journal.add("a", plan, 3, began.UnixNano())
	m := merger{primary: d, journal: &d.journal}
	if err := m.bring(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	if d.units != 8 || !d.journal.empty() {
		t.Errorf("%d units were charged and %d entries are held, want 8 and 0", d.units, d.journal.held.Load())
	}
}

// A dropper is a primary during whose first charge the entry is dropped.
type dropper struct {
	journal journal
	units   int64
}

func (d *dropper) AddUsage(_ context.Context, subject string, plan *ratelimit.Plan, units [ratelimit.MaxQuotas]int64, at time.Time) error {
	if d.units == 0 {
		e, _ := d.journal.find(subject)
		s := d.journal.lock(subject)
		d.journal.remove(s, e)
		s.mu.Unlock()
		d.journal.add(subject, plan, 5, at.UnixNano())
	}
	d.units += units[0]
	return nil
}

// What a smooth quota admits in an outage comes back meanwhile, and the fractions of units
// that came back are not lost.
func TestJournalOfSmoothQuota(t *testing.T) {
	var j journal
	j.init(1024)
	smooth := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(10), ratelimit.PerDay(10_000))
	now := began.UnixNano()
	j.add("a", smooth, 9, now)
	for range 1000 {
		now += int64(900 * time.Millisecond)
		j.add("a", smooth, 1, now)
		now += int64(200 * time.Millisecond)
	}
	e, _ := j.find("a")
	if got := e.charges[0].allOwed(); got[0] > 1 || got[1] != 1009 {
		t.Errorf("a request each 1.1 seconds at a rate of one a second owes %v, want at most 1, and 1009 of the day", got)
	}
	j.add("a", smooth, 8, now)
	j.add("a", smooth, 1, now+int64(2500*time.Millisecond))
	if got := e.charges[0].allOwed(); got[0] < 7 || got[0] > 8 {
		t.Errorf("8 units and one more after 2.5 seconds owe %d, want 7 or, with what was owed before, 8", got[0])
	}
	if !e.credit(smooth, 8, now) || e.charges[0].allOwed()[0] != 0 {
		t.Errorf("8 of them were given back: %d are owed, want 0", e.charges[0].allOwed()[0])
	}
}
