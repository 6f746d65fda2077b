package memory

import "sync/atomic"

// A table is an open-addressing hash table of slots of one size, in one array
// without pointers. A search takes no lock. One that misses because a slot was
// moving is repeated under the lock of the segment.
//
// Linear probing keeps a search within one or two cache lines. Removal moves the
// slots behind back, so that there are no tombstones, and no rehash except for a
// change of size.
type table struct {
	words  []uint64
	slots  uint64
	stride uint64    // words in a slot
	kept   []instant // by block: before that time no slot can make room; 0: not known

	allKept instant // the first of these times, or an earlier one

	bansSince atomic.Int64  // Unix seconds; no ban that a meter has began later
	moves     atomic.Uint64 // of slots; a search may miss one that moves
}

// A block is some slots next to each other, of which the table remembers in one number that
// a search for room need not look at them.
const blockSlots = 32

// The share of slots in use, in percent. Growing by a quarter keeps it between
// 64 and 80 while the table fills.
const (
	fullest  = 80
	emptiest = 40
	minSlots = 8
)

func newTable(slots, stride uint64) *table {
	return &table{words: make([]uint64, slots*stride), slots: slots, stride: stride, kept: make([]instant, (slots+blockSlots-1)/blockSlots)}
}

func (t *table) slot(i uint64) slot { return t.words[i*t.stride : (i+1)*t.stride] }

// home returns where the search for a hash starts. It uses the lower half of the
// hash; the upper bits chose the segment. The lowest bit, which conduct alone has, leads
// half the table further: a search for an account passes few slots.
func (t *table) home(h uint64) uint64 { return uint64(uint32(h)^uint32(h)<<31) * t.slots >> 32 }

func (t *table) next(i uint64) uint64 {
	if i++; i == t.slots {
		return 0
	}
	return i
}

// find returns the slot that holds the hash, or the empty one for it.
func (t *table) find(h uint64) (i uint64, found bool) {
	words, stride := t.words, t.stride
	i = t.home(h)
	at := i * stride
	for range t.slots {
		switch atomic.LoadUint64(&words[at]) {
		case h:
			return i, true
		case 0:
			return i, false
		}
		if i, at = i+1, at+stride; i == t.slots {
			i, at = 0, 0
		}
	}
	return i, false
}

// resized returns a table of another size with the same contents, for which its
// slots are wide enough. The old one stays frozen. No other goroutine sees the new
// one before it is complete, so that plain writes can fill it.
func (t *table) resized(slots, stride uint64) *table {
	r := newTable(slots, stride)
	r.bansSince.Store(t.bansSince.Load())
	for i := range t.slots {
		from := t.slot(i)
		if from.hash() == 0 {
			continue
		}
		j, _ := r.find(from.hash())
		m := from.freeze()
		to := r.slot(j)
		to[hashWord], to[meterWord] = from.hash(), uint64(m)
		for k := range min(len(from), len(to)) - firstWindow {
			to[firstWindow+k] = from.word(k)
		}
	}
	return r
}

// distance returns how many steps of next lead from i to j.
func (t *table) distance(i, j uint64) uint64 {
	if j < i {
		j += t.slots
	}
	return j - i
}

// release notes until when slot i is kept, at most.
func (t *table) release(i uint64, until instant) {
	kept := &t.kept[i/blockSlots]
	*kept, t.allKept = min(*kept, until), min(t.allKept, until)
}

// remove empties slot i, and moves back the slots behind it that it displaced.
func (t *table) remove(i uint64) {
	for j := t.next(i); ; j = t.next(j) {
		s := t.slot(j)
		h := s.hash()
		if h == 0 {
			break
		}
		// The slot stays if its home lies cyclically in (i, j].
		if t.distance(t.home(h), j) < t.distance(i, j) {
			continue
		}
		s.copyTo(t.slot(i))
		t.moves.Add(1) // before slot j changes
		t.release(i, t.kept[j/blockSlots])
		i = j
	}
	s := t.slot(i)
	m := s.freeze()
	s.setHash(0)
	s.setMeter((m | frozen).after(m))
}
