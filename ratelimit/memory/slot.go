package memory

import (
	"runtime"
	"sync/atomic"

	"github.com/animalstore/gatehouse/internal/gcra"
)

// A slot holds the account of one subject, or its conduct, strikes and bans, in
// words that are read and written atomically. An account with two windows:
//
//	        63                             32 31      18 17 16 15 14 13           0
//	word 0 | hash of the subject; even; 0 in an empty slot                         |
//	word 1 | count                           | version  | s| d| c   | layout       | the meter
//	word 2 | count when the window began     | end of the window, Unix seconds     |
//	word 3 | count when the window began     | end of the window, Unix seconds     |
//
// Conduct (type conduct explains its fields):
//
//	word 0 | hash of the subject, plus 1                                           |
//	word 1 | expires, Unix seconds           | version  | s| d| 0   | conductLayout |
//	word 2 | first, Unix milliseconds (42 bits)    | level (8)  | strikes (14)     |
//	word 3 | until, Unix seconds             | since; or cause (2), length (30)    |
//
// Since, in Unix seconds, is there while there are strikes, and cause and length, in seconds,
// of the last ban otherwise: a strike ends what is known of a ban.
//
// The count is all units that the subject was ever charged, modulo 2³². What a
// window has used is the count less the count when it began, so that one
// compare-and-swap of the meter charges a request to every window.
//
// From a ban until the next admission or strike the upper half of the meter is the end of the
// ban, in Unix seconds, and the count is 0. So a banned subject is refused before its conduct
// is read.
//
// A wide window, of which 2³² units or more are used, has a second word behind the words of
// all windows. It holds the units that were used when the account was last written under the
// lock, and the first word the count at that time. The layout says which windows are wide.
//
// The word of a smooth quota has the time at which its bucket is full: the lower half is
// that time in Unix seconds, rounded up, and the upper half by how much, in 2⁻³² seconds.
//
// Without the lock of the segment only a charge changes a slot: it raises the count and
// sets the dirty flag. A charge that is made together with others, or that changes the
// word of a bucket, is first made pending: the slot has no layout until the meter is put
// back, charged or not. Any other change of the words, layout or count holds the lock.
// Every change of the words, layout or count other than a charge of fixed windows puts
// the next version into the meter. A compare-and-swap of the meter that succeeds therefore
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

func (s slot) word(i int) uint64       { return atomic.LoadUint64(&s[firstWindow+i]) }
func (s slot) setWord(i int, w uint64) { atomic.StoreUint64(&s[firstWindow+i], w) }

func (s slot) window(i int) windowWord       { return windowWord(s.word(i)) }
func (s slot) setWindow(i int, w windowWord) { s.setWord(i, uint64(w)) }

// has reports whether the slot has an i-th word. Without the lock it may not, if a
// layout with more windows has just replaced that of the slot.
func (s slot) has(i int) bool { return firstWindow+i < len(s) }

// settled returns the meter once no charge is pending. A charge is for a hundredth
// of a microsecond, and a group for about a tenth. They wait for nothing meanwhile.
func (s slot) settled() meter {
	for {
		m := s.meter()
		if !m.isPending() {
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
func (s slot) mark(set, cleared meter) meter {
	for {
		m := s.settled()
		if s.swap(m, m&^cleared|set) {
			return m
		}
	}
}

// A meter is the count of a slot with its version, flags and the number of its
// layout.
type meter uint64

const (
	frozen        = meter(1<<14 - 1) // in place of a layout: the slot is being changed
	pending       = meter(1<<14 - 2) // in place of a layout: a charge is being made; see admitAll, begin and admitSmooth
	conductLayout = meter(1<<14 - 3) // in place of a layout: the slot holds conduct
	maxLayouts    = int(conductLayout)

	dirty  = meter(1 << 16) // d: changed since the last Save
	stored = meter(1 << 17) // s: was saved or loaded, so that Save must report its end

	versionUnit = meter(1 << 18)
	versionMask = meter(1<<32 - 1<<18)
	countUnit   = meter(1 << 32)
)

// What an account says of its conduct (c), in the order of what an admission must do.
const (
	noConduct    = meter(iota << 14) // there is none
	quietConduct                     // the first request of a window must read it
	checkConduct                     // every admission must read it first
	banned                           // as checkConduct, and the end of the ban is in place of the count

	conductMask = banned
)

func newMeter(count uint32, layout int) meter { return meter(count)*countUnit | meter(layout) }

// The upper half is one of these, as conduct and layout say.
func (m meter) count() uint32       { return uint32(m / countUnit) }
func (m meter) banEnd() unixSecond  { return unixSecond(m.count()) }
func (m meter) expires() unixSecond { return unixSecond(m.count()) } // of conduct

func (m meter) version() int     { return int(m & versionMask / versionUnit) }
func (m meter) layout() int      { return int(m & frozen) }
func (m meter) conduct() meter   { return m & conductMask }
func (m meter) has(f meter) bool { return m&f != 0 }
func (m meter) isFrozen() bool   { return m&frozen >= pending } // or pending
func (m meter) isPending() bool  { return m&frozen == pending }
func (m meter) isConduct() bool  { return m&frozen == conductLayout }

// withCount returns m with the count in place of the end of a ban.
func (m meter) withCount() meter {
	if m.conduct() == banned {
		return m&(countUnit-1)&^conductMask | checkConduct
	}
	return m
}

// withPending returns m while a charge of the slot is pending.
func (m meter) withPending() meter { return m&^frozen | pending }

// charged returns m after a charge of cost units.
func (m meter) charged(cost int64) meter { return m + meter(cost)*countUnit | dirty }

// after returns m with the version that follows the one of old.
func (m meter) after(old meter) meter {
	return m&^versionMask | (old+versionUnit)&versionMask
}

// A windowWord is the count when a window began, and the end of the window; or by what fraction
// the end of a bucket was rounded up, and that end.
type windowWord uint64

func newWindowWord(began uint32, end unixSecond) windowWord {
	return windowWord(began)<<32 | windowWord(uint32(end))
}

func (w windowWord) began() uint32           { return uint32(w >> 32) }
func (w windowWord) end() unixSecond         { return unixSecond(uint32(w)) }
func (w windowWord) used(count uint32) int64 { return int64(count - w.began()) }

func newBucketWord(end unixSecond, rounded gcra.Fraction) windowWord {
	return newWindowWord(uint32(rounded), end)
}

func (w windowWord) rounded() gcra.Fraction { return gcra.Fraction(w.began()) }

// maxNarrow is the most units that one word counts. The lock writes a word that would have more.
const maxNarrow = 1<<32 - 1

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
