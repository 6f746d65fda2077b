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

// A flood of fresh subjects drops other fresh ones, and nobody who used more.
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
	j.order("ordered", (*entry).orderUnban)
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
		if e, _ := j.claim(context.Background(), fmt.Sprint("heavy ", i)); e != nil && e.usage[0].units[0] == 10 {
			kept++
		}
	}
	if e, _ := j.claim(context.Background(), "ordered"); kept != heavy || e == nil {
		t.Errorf("%d of %d subjects who used much are left, and the order %+v", kept, heavy, e)
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

func TestJournalRestores(t *testing.T) {
	var j journal
	j.init(1024)
	add := func(units int64) { j.add("a", plan, units, began.UnixNano()) }
	claim := func() *entry {
		e, err := j.claim(context.Background(), "a")
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	add(3)
	e := claim()
	j.restore(e)
	add(4)
	e = claim()
	add(5)
	j.restore(e)
	if e = claim(); e == nil || e.usage[0].units[0] != 12 {
		t.Errorf("what was put back and what came since: got %+v, want 12 units", e)
	}
	add(6)
	j.done(e)
	if n := j.held.Load(); n != 1 {
		t.Errorf("%d entries are held, want the one that came during the merging", n)
	}
	if e = claim(); e == nil || e.usage[0].units[0] != 6 {
		t.Errorf("what came during the merging: got %+v, want 6 units", e)
	}
	j.done(e)
	if !j.empty() || claim() != nil {
		t.Error("the journal is not empty after everything was merged")
	}
}

func TestJournalMapsShrink(t *testing.T) {
	var j journal
	j.init(1 << 16)
	for i := range 10_000 {
		j.add(fmt.Sprint(i), plan, 1, began.UnixNano())
	}
	for e := j.claimAny(0); e != nil; e = j.claimAny(0) {
		j.done(e)
	}
	for i := range j.shards {
		if s := &j.shards[i]; s.entries != nil || len(s.claimed) != 0 {
			t.Errorf("shard %d still has a map of %d entries, and %d claimed ones", i, len(s.entries), len(s.claimed))
		}
	}
	if !j.empty() {
		t.Errorf("%d entries are held after all were merged", j.held.Load())
	}
}

func TestEntry(t *testing.T) {
	at := func(offset time.Duration) int64 { return began.Add(offset).UnixNano() }
	other := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerHour(5))
	tests := []struct {
		name string
		do   func(e *entry)
		want string
	}{
		{"usage of one window adds up", func(e *entry) {
			e.add(plan, 3, at(0))
			e.add(plan, 4, at(time.Second))
		}, "[7 7 0 0]"},
		{"a later window begins anew", func(e *entry) {
			e.add(plan, 3, at(0))
			e.add(plan, 4, at(time.Minute))
		}, "[4 7 0 0]"},
		{"after a step back of the clock the later window counts for what is used", func(e *entry) {
			e.add(plan, 3, at(time.Minute))
			e.add(plan, 4, at(0))
			e.add(plan, 5, at(time.Second))
		}, "[12 12 0 0]"},
		{"an admission that is entered late adds nothing to the next window", func(e *entry) {
			e.add(plan, 3, at(0))
			e.add(plan, 4, at(-time.Millisecond))
		}, "[3 7 0 0]"},
		{"the clock stepped back after what was not merged", func(e *entry) {
			older := newEntry("")
			older.add(plan, 3, at(time.Minute))
			e.add(plan, 4, at(0))
			e.follow(older)
		}, "[7 7 0 0]"},
		{"nothing is added to a charge that was sent", func(e *entry) {
			e.add(plan, 3, at(0))
			e.usage[0].mark = "sent"
			e.add(plan, 4, at(0))
			e.add(plan, 5, at(0))
		}, "[3 3 0 0] [9 9 0 0]"},
		{"nothing is added to a charge that was sent and put back", func(e *entry) {
			older := newEntry("")
			older.add(plan, 3, at(0))
			older.usage[0].mark = "sent"
			e.add(plan, 4, at(0))
			e.follow(older)
			e.add(plan, 5, at(0))
		}, "[9 9 0 0] [3 3 0 0]"},
		{"a charge that was sent gives no credit", func(e *entry) {
			e.add(plan, 3, at(0))
			e.usage[0].mark = "sent"
			if e.credit(plan, 2, at(0)) {
				e.orderUnban()
			}
		}, "[3 3 0 0]"},
		{"no count goes over the largest limit", func(e *entry) {
			e.add(plan, ratelimit.MaxLimit, at(0))
			e.add(plan, 4, at(0))
		}, "[4294967295 4294967295 0 0]"},
		{"other windows are apart", func(e *entry) {
			e.add(plan, 3, at(0))
			e.add(other, 4, at(0))
			e.add(plan, 5, at(0))
		}, "[8 8 0 0] [4 0 0 0]"},
		{"a credit is for its window", func(e *entry) {
			e.add(plan, 3, at(0))
			e.add(plan, 4, at(time.Minute))
			e.credit(plan, 2, at(0))
		}, "[4 5 0 0]"},
		{"a credit goes no lower than zero", func(e *entry) {
			e.add(plan, 3, at(0))
			e.credit(plan, 5, at(0))
		}, "[0 0 0 0]"},
		{"what was not merged comes before what came since", func(e *entry) {
			older := newEntry("")
			older.add(plan, 3, at(0))
			e.add(plan, 4, at(time.Minute))
			e.follow(older)
		}, "[4 7 0 0]"},
		{"a reset undoes what was not merged", func(e *entry) {
			older := newEntry("")
			older.add(plan, 3, at(0))
			e.orderReset()
			e.add(plan, 4, at(0))
			e.follow(older)
		}, "reset [4 4 0 0]"},
		{"an older order holds if there is no newer one", func(e *entry) {
			older := newEntry("")
			older.orderReset()
			older.orderBan(began)
			e.add(plan, 4, at(0))
			e.follow(older)
		}, "reset ban [4 4 0 0]"},
		{"a newer order holds", func(e *entry) {
			older := newEntry("")
			older.orderBan(began)
			e.orderUnban()
			e.follow(older)
		}, "unban"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := newEntry("")
			test.do(e)
			got := ""
			if e.reset {
				got += " reset"
			}
			if e.unban {
				got += " unban"
			}
			if e.ban != 0 {
				got += " ban"
			}
			for _, u := range e.usage {
				got += fmt.Sprint(" ", u.units)
			}
			if got = got[1:]; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestEntryIsBounded(t *testing.T) {
	e := newEntry("")
	for i := range 100 {
		e.add(ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.Quota{Limit: 1, Window: time.Duration(i+1) * time.Second}), 1, began.UnixNano())
	}
	if len(e.usage) != maxUsage {
		t.Errorf("a hundred combinations of windows take %d places, want %d", len(e.usage), maxUsage)
	}
}

// Entries that the primary refused come after the others, when their time has
// come, and wait for twice as long each time.
func TestRefusedEntriesComeLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		j.init(1024)
		now := time.Now().UnixNano()
		for i := range 50 {
			j.add(fmt.Sprint("refused ", i), plan, 1, now)
		}
		for e := j.claimAny(j.time()); e != nil; e = j.claimAny(j.time()) {
			j.restore(e)
			j.refuse(e, time.Second, 4*time.Second)
		}
		for i := range 50 {
			j.add(fmt.Sprint("fresh ", i), plan, 1, now)
		}
		time.Sleep(time.Second)
		for range 50 {
			e := j.claimAny(j.time())
			if e == nil || e.tries > 0 {
				t.Fatalf("claimed %+v, want one that was not refused while there are some", e)
			}
			j.done(e)
		}
		for _, wait := range []time.Duration{2 * time.Second, 4 * time.Second, 4 * time.Second} {
			for range 50 {
				e := j.claimAny(j.time())
				if e == nil {
					t.Fatalf("nothing was claimed, want those whose time has come")
				}
				j.restore(e)
				j.refuse(e, time.Second, 4*time.Second)
			}
			time.Sleep(wait - 1)
			if e := j.claimAny(j.time()); e != nil {
				t.Fatalf("claimed %+v before %v had passed", e, wait)
			}
			time.Sleep(time.Nanosecond)
		}
	})
}
