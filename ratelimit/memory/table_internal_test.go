package memory

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A compare-and-swap of a meter that was read before a change fails after it: no
// change leaves the meter as it was, and the count, the layout and the flags are
// those of the change.
func TestEveryChangeHasAVersionOfItsOwn(t *testing.T) {
	fresh := newMeter(7, 3) | checkRecord | stored
	seen := map[meter]bool{}
	m := fresh
	for range 1 << 15 {
		if seen[m] {
			t.Fatal("a version comes again sooner than its 15 bits demand")
		}
		seen[m] = true
		next := fresh.after(m)
		if next.count() != 7 || next.layout() != 3 || next&(checkRecord|dirty|stored) != checkRecord|stored {
			t.Fatalf("the version changes the rest of the meter: %x", uint64(next))
		}
		m = next
	}
}

// The slots of a table that was replaced are frozen: a charge that still looks at
// one of them fails, and is not lost. So is the slot from which another one is
// filled.
func TestWhatWasCopiedIsFrozen(t *testing.T) {
	old := newTable(minSlots, firstWindow+1)
	for h := uint64(2); h < 10; h += 2 {
		i, _ := old.find(h)
		old.slot(i).setHash(h)
		old.slot(i).setMeter(newMeter(uint32(h), 0))
	}
	grown := old.resized(2*minSlots, old.stride)
	for h := uint64(2); h < 10; h += 2 {
		i, _ := old.find(h)
		if !old.slot(i).meter().isFrozen() {
			t.Errorf("subject %d can be charged in the table that was replaced", h)
		}
		i, found := grown.find(h)
		if m := grown.slot(i).meter(); !found || m.isFrozen() || m.count() != uint32(h) {
			t.Errorf("subject %d in the new table: found %v, frozen %v, count %d", h, found, m.isFrozen(), m.count())
		}
	}
	from, to := slot(make([]uint64, firstWindow+1)), slot(make([]uint64, firstWindow+1))
	from.setHash(2)
	from.setMeter(newMeter(5, 0))
	from.copyTo(to)
	if !from.meter().isFrozen() || to.meter().isFrozen() || to.meter().count() != 5 {
		t.Errorf("copied from %x to %x, want the source frozen and the copy not", uint64(from.meter()), uint64(to.meter()))
	}
}

// A slot that moves to another block may make room there as soon as before.
func TestMovedSlotsMakeRoom(t *testing.T) {
	table := newTable(2*blockSlots, firstWindow+1)
	for h := uint64(blockSlots-1) << 26; table.slot(blockSlots).hash() == 0; h += 2 { // two at the end of the first block
		i, _ := table.find(h)
		table.slot(i).setHash(h)
	}
	table.held[0], table.held[1], table.full = 20, 10, 10
	table.remove(blockSlots - 1)
	if table.held[0] != 10 || table.held[1] != 10 {
		t.Errorf("a slot moved from a block that is held until 10 to one until 20: %v", table.held)
	}
}

// A slot that was found for a subject may hold another one by now. The fast paths
// then decide nothing.
func TestFastPathsLookAtTheHash(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	l := internalLimiter(t, Options{Now: func() time.Time { return now }})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(2))
	internalTake(t, l, "a", plan, 1)
	h := l.key.sum("a")
	table := l.tables[h>>l.shift].Load()
	i, _ := table.find(h)
	d := ratelimit.Decision{Plan: plan, Cost: 1, Time: now.UnixNano()}
	if l.admit(table.slot(i), l.key.sum("b"), &d, nil) {
		t.Error("a request of b was charged to a")
	}
	internalTake(t, l, "a", plan, 1)
	if v := l.look(table, i, table.slot(i), l.key.sum("b"), &d); v != unclear {
		t.Error("a request of b was refused for what a used")
	}
	if v := l.look(table, i, table.slot(i), h, &d); v != refused {
		t.Error("a request of a was not refused, although a has used up its quota")
	}
}
