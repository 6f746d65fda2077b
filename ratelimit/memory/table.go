package memory

import (
	"runtime"
	"sync/atomic"
)

// A slot holds the account of one subject, or its record of strikes and bans, in
// words that are read and written atomically. An account with two windows:
//
//	        63                             32 31         17 16 15 14 13           0
//	word 0 | hash of the subject; even; 0 in an empty slot                         |
//	word 1 | count                           | version     | s| d| c| layout       | the meter
//	word 2 | count when the window began     | end of the window, Unix seconds     |
//	word 3 | count when the window began     | end of the window, Unix seconds     |
//
// A record (type record explains its fields):
//
//	word 0 | hash of the subject, plus 1                                           |
//	word 1 | expires, Unix seconds           | version     | s| d| 0| recordLayout |
//	word 2 | first, Unix milliseconds (42 bits)    | level (8)  | strikes (14)     |
//	word 3 | until, Unix seconds             | since or length, seconds            |
//
// The count is all units that the subject was ever charged, modulo 2³². What a
// window has used is the count less the count when it began, so that one
// compare-and-swap of the meter charges a request to every window.
//
// Without the lock of the segment only a charge changes a slot: it raises the
// count and sets the dirty flag. A charge that is made together with others may hold
// the slot before: it then has no layout until the group puts the meter back, charged
// or not. Any other change of the words, layout or count holds the lock and puts the
// next version into the meter. A compare-and-swap of the meter that succeeds therefore
// proves that all words read since the meter was read still stood.
type slot []uint64

const (
	hashWord = iota
	meterWord
	firstWindow
)

func (s slot) hash() uint64     { return atomic.LoadUint64(&s[hashWord]) }
func (s slot) setHash(h uint64) { atomic.StoreUint64(&s[hashWord], h) }

func (s slot) meter() meter     { return meter(atomic.LoadUint64(&s[meterWord])) }
func (s slot) setMeter(m meter) { atomic.StoreUint64(&s[meterWord], uint64(m)) }
func (s slot) swap(old, m meter) bool {
	return atomic.CompareAndSwapUint64(&s[meterWord], uint64(old), uint64(m))
}

func (s slot) word(i int) windowWord       { return windowWord(atomic.LoadUint64(&s[firstWindow+i])) }
func (s slot) setWord(i int, w windowWord) { atomic.StoreUint64(&s[firstWindow+i], uint64(w)) }

// has reports whether the slot has an i-th window. Without the lock it may not, if a
// layout with more windows has just replaced that of the slot.
func (s slot) has(i int) bool { return firstWindow+i < len(s) }

// settled returns the meter once no group of charges holds the slot. A group holds it
// for about a tenth of a microsecond, and waits for nothing meanwhile.
func (s slot) settled() meter {
	for {
		m := s.meter()
		if !m.isHeld() {
			return m
		}
		runtime.Gosched()
	}
}

// freeze stops charges without the lock, and returns the meter as it was. The
// holder of the lock calls it before any change, and puts a meter with the next
// version in place after it.
func (s slot) freeze() meter {
	for {
		m := s.settled()
		if s.swap(m, m|frozen) {
			return m
		}
	}
}

// mark sets and clears flags, of dirty and stored, and returns the meter that the slot
// had.
func (s slot) mark(set, clear meter) meter {
	for {
		m := s.settled()
		if s.swap(m, m&^clear|set) {
			return m
		}
	}
}

// A meter is the count of a slot with its version, flags and the number of its
// layout.
type meter uint64

const (
	frozen       = meter(1<<14 - 1) // in place of a layout: the slot is being changed
	held         = meter(1<<14 - 2) // in place of a layout: a group of charges is being made; see group.go
	recordLayout = meter(1<<14 - 3) // in place of a layout: the slot holds a record
	maxLayouts   = int(recordLayout)

	checkRecord = meter(1 << 14) // c: an admission must read the record first
	dirty       = meter(1 << 15) // d: changed since the last Save
	stored      = meter(1 << 16) // s: was saved or loaded, so that Save must report its end

	versionUnit = meter(1 << 17)
	versionMask = meter(1<<32 - 1<<17)
	countUnit   = meter(1 << 32)
)

func newMeter(count uint32, layout int) meter { return meter(count)*countUnit | meter(layout) }

func (m meter) count() uint32    { return uint32(m / countUnit) }
func (m meter) layout() int      { return int(m & frozen) }
func (m meter) has(f meter) bool { return m&f != 0 }
func (m meter) isFrozen() bool   { return m&frozen >= held } // or held
func (m meter) isHeld() bool     { return m&frozen == held }
func (m meter) isRecord() bool   { return m&frozen == recordLayout }

// held returns m of a slot that a group holds.
func (m meter) held() meter { return m&^frozen | held }

// charged returns m after a charge of cost units.
func (m meter) charged(cost int64) meter { return m + meter(cost)*countUnit | dirty }

// after returns m with the version that follows the one of old.
func (m meter) after(old meter) meter {
	return m&^versionMask | (old+versionUnit)&versionMask
}

// A windowWord is the count when a window began, and the end of the window.
type windowWord uint64

func newWindowWord(began uint32, end int64) windowWord {
	return windowWord(began)<<32 | windowWord(uint32(end))
}

func (w windowWord) began() uint32           { return uint32(w >> 32) }
func (w windowWord) end() int64              { return int64(uint32(w)) }
func (w windowWord) used(count uint32) int64 { return int64(count - w.began()) }

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
	stride uint64 // words in a slot
}

// The share of slots in use, in percent. Growing by a quarter keeps it between
// 64 and 80 while the table fills.
const (
	fullest  = 80
	emptiest = 40
	minSlots = 8
)

func newTable(slots, stride uint64) *table {
	return &table{words: make([]uint64, slots*stride), slots: slots, stride: stride}
}

func (t *table) slot(i uint64) slot { return t.words[i*t.stride : (i+1)*t.stride] }

// home returns where the search for a hash starts. It uses the lower half of the
// hash; the upper bits chose the segment.
func (t *table) home(h uint64) uint64 { return uint64(uint32(h)) * t.slots >> 32 }

func (t *table) next(i uint64) uint64 {
	if i++; i == t.slots {
		return 0
	}
	return i
}

// find returns the slot that holds the hash, or the empty one for it.
func (t *table) find(h uint64) (i uint64, found bool) { return t.findFrom(t.home(h), h) }

// findFrom is find that starts at slot i.
func (t *table) findFrom(i, h uint64) (_ uint64, found bool) {
	words, stride := t.words, t.stride
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

// copyTo freezes a slot and copies it into another one. The meter there gets the
// version that follows its own.
func (s slot) copyTo(to slot) {
	m := s.freeze()
	old := to.freeze()
	for i := range len(s) - firstWindow {
		to.setWord(i, s.word(i))
	}
	to.setHash(s.hash())
	to.setMeter(m.after(old))
}

// resized returns a table of another size with the same contents, for which its
// slots are wide enough. The old one stays frozen. No other goroutine sees the new
// one before it is complete, so that plain writes can fill it.
func (t *table) resized(slots, stride uint64) *table {
	r := newTable(slots, stride)
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
			to[firstWindow+k] = uint64(from.word(k))
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
		i = j
	}
	s := t.slot(i)
	m := s.freeze()
	s.setHash(0)
	s.setMeter((m | frozen).after(m))
}
