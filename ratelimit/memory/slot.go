package memory

import (
	"sync/atomic"
	"time"
)

// A slot holds one account, in words that are read and written atomically:
//
//	word 0   the subject's hash; 0: the slot is empty
//	word 1   the meter
//	word 2…  a window each: the reading of the meter when it began, and its end
//
// The meter counts all units that the subject was ever charged, modulo 2³². What
// a window has used is the meter's reading less the reading at its beginning, so
// that one compare-and-swap of one word charges a request to every window.
//
// Only the goroutine that holds the segment's lock changes anything but the
// count and the dirty flag of a charge, and it puts a new version into the meter
// when it does. A compare-and-swap of the meter that succeeds therefore proves
// that every word read since the meter was read still stood.
type slot []uint64

const (
	wordHash = iota
	wordMeter
	wordWindows
)

func (s slot) hash() uint64     { return atomic.LoadUint64(&s[wordHash]) }
func (s slot) setHash(h uint64) { atomic.StoreUint64(&s[wordHash], h) }

func (s slot) meter() meter     { return meter(atomic.LoadUint64(&s[wordMeter])) }
func (s slot) setMeter(m meter) { atomic.StoreUint64(&s[wordMeter], uint64(m)) }
func (s slot) swap(old, m meter) bool {
	return atomic.CompareAndSwapUint64(&s[wordMeter], uint64(old), uint64(m))
}

func (s slot) window(i int) window       { return window(atomic.LoadUint64(&s[wordWindows+i])) }
func (s slot) setWindow(i int, w window) { atomic.StoreUint64(&s[wordWindows+i], uint64(w)) }

// freeze stops the meter, so that nothing is charged to the slot without the
// lock, and returns its last reading. The holder of the lock calls it before any
// change, and puts a meter with the next version in place after it.
func (s slot) freeze() meter {
	for {
		m := s.meter()
		if s.swap(m, m|frozen) {
			return m
		}
	}
}

// A meter is, from the top: 32 bits of count, 15 of version, three flags, and 14
// bits that number the shape.
type meter uint64

const (
	frozen      = meter(1<<14 - 1) // in place of a shape: the slot is being changed
	recordShape = meter(1<<14 - 2) // in place of a shape: the slot holds a record
	maxShapes   = int(recordShape)

	marked = meter(1 << 14) // the record must be looked at before a request is admitted
	dirty  = meter(1 << 15) // changed since the last Save
	stored = meter(1 << 16) // was saved or loaded, so that Save must report its end

	versionUnit = meter(1 << 17)
	versionMask = meter(1<<32 - 1<<17)
	countUnit   = meter(1 << 32)
)

func newMeter(count uint32, shape int) meter { return meter(count)*countUnit | meter(shape) }

func (m meter) count() uint32 { return uint32(m / countUnit) }
func (m meter) shape() int    { return int(m & frozen) }

// frozen reports whether the slot is being changed.
func (m meter) frozen() bool { return m&frozen == frozen }

// after returns m with the version that follows the one of old.
func (m meter) after(old meter) meter {
	return m&^versionMask | (old+versionUnit)&versionMask
}

// A window is the reading of the meter when it began, in the upper half, and
// its end in Unix seconds in the lower.
type window uint64

func newWindow(began uint32, end int64) window { return window(began)<<32 | window(uint32(end)) }

func (w window) began() uint32           { return uint32(w >> 32) }
func (w window) end() int64              { return int64(uint32(w)) }
func (w window) used(count uint32) int64 { return int64(count - w.began()) }

// open reports whether now lies in a window of the given length. It does not if
// the window is over, nor if the clock stepped back to a time before it.
func (w window) open(now int64, length time.Duration) bool {
	left := w.end()*int64(time.Second) - now
	return left > 0 && left <= int64(length)
}
