package memory

import (
	"sync/atomic"
	"time"
)

// A clock tells the time of day in Unix nanoseconds.
//
// The system's clock is read as little as it can be. time.Since reads the
// monotonic clock alone, at half the cost of time.Now; the distance of the wall
// clock from it is measured anew every resync, and a step of the wall clock is
// noticed that much later. When decisions are many, even that is too often:
// about then returns a time that a timer keeps.
type clock struct {
	read   func() time.Time // in place of the system's clock; nil: the system's
	start  time.Time
	offset atomic.Int64 // wall clock less time since start
	due    atomic.Int64 // time since start at which the offset is measured again
	reads  atomic.Int64 // calls of about that had to read, since the last measurement

	_     [64]byte
	kept  atomic.Int64 // the time that the timer keeps; 0: there is no timer
	used  atomic.Bool  // kept was read since the last tick
	timer atomic.Pointer[time.Timer]
	_     [40]byte
}

const (
	resync = 10 * time.Millisecond
	tick   = time.Millisecond
	busy   = 2000 // reads within a resync that make it worth to keep the time
)

// Engines keep times in 32 bits of Unix seconds. The clock saturates so far
// from the ends, 1970 and 2106, that no window or ban overflows them.
const (
	earliest = 0
	latest   = (1<<32 - 1 - 3*366*24*3600) * int64(time.Second)
)

// nanoseconds returns t in Unix nanoseconds, and for a time beyond the ends of the
// clock one in the second at that end.
func nanoseconds(t time.Time) int64 {
	return min(max(t.Unix(), earliest), latest/int64(time.Second))*int64(time.Second) + int64(t.Nanosecond())
}

func (c *clock) init(read func() time.Time) {
	c.read = read
	c.start = time.Now()
	c.offset.Store(c.start.UnixNano())
}

// now returns the time.
func (c *clock) now() int64 {
	if c.read != nil {
		return min(nanoseconds(c.read()), latest)
	}
	since := int64(time.Since(c.start))
	if since >= c.due.Load() {
		since = c.measure()
	}
	return c.offset.Load() + since
}

// measure sets the offset. It takes both clocks from one reading: a goroutine
// that is stopped between two would set the clock ahead. Callers that race store
// nearly the same values.
func (c *clock) measure() (since int64) {
	now := time.Now()
	since = int64(now.Sub(c.start))
	c.due.Store(since + int64(resync))
	c.reads.Store(0)
	c.offset.Store(min(max(now.UnixNano(), earliest), latest) - since)
	return since
}

// about returns the time, or one that is late: by a tick and by as long as the
// scheduler holds the timer up, and never early.
func (c *clock) coarse() int64 {
	if kept := c.kept.Load(); kept != 0 {
		if !c.used.Load() {
			c.used.Store(true)
		}
		return kept
	}
	now := c.now()
	if c.read == nil && c.reads.Add(1) == busy {
		c.keep(now)
	}
	return now
}

// keep starts a timer that keeps the time until no request needs it.
func (c *clock) keep(now int64) {
	if !c.kept.CompareAndSwap(0, now) {
		return
	}
	t := time.AfterFunc(time.Hour, c.tick)
	c.timer.Store(t)
	t.Reset(tick)
}

func (c *clock) tick() {
	if !c.used.Swap(false) {
		c.kept.Store(0)
		return
	}
	c.kept.Store(c.now())
	c.timer.Load().Reset(tick)
}
