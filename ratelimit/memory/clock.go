package memory

import (
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
)

// An instant is a time in Unix nanoseconds, as clocks and decisions have it.
type instant int64

// timeOf returns when a decision was made.
func timeOf(d *ratelimit.Decision) instant { return instant(d.Time) }

func (t instant) add(length time.Duration) instant  { return t + instant(length) }
func (t instant) since(other instant) time.Duration { return time.Duration(t - other) }
func (t instant) second() unixSecond                { return unixSecond(fixedwindow.Seconds(int64(t))) }
func (t instant) secondUp() unixSecond              { return unixSecond(fixedwindow.SecondsUp(int64(t))) }
func (t instant) millisecond() unixMilli            { return unixMilli(t / instant(time.Millisecond)) }

// A unixSecond is a time in Unix seconds, as windows, strikes and bans have it.
type unixSecond int64

func (s unixSecond) instant() instant       { return instant(s) * instant(time.Second) }
func (s unixSecond) millisecond() unixMilli { return unixMilli(s) * 1000 }

func (s unixSecond) add(length wholeSeconds) unixSecond  { return s + unixSecond(length) }
func (s unixSecond) since(other unixSecond) wholeSeconds { return wholeSeconds(s - other) }

// A number of wholeSeconds is a length of time.
type wholeSeconds int64

// A unixMilli is a time in Unix milliseconds.
type unixMilli int64

// A clock tells the time of day in Unix nanoseconds.
//
// It reads the system's clock as little as it can. time.Since reads the monotonic
// clock alone, at half the cost of time.Now. The clock measures the distance of
// the wall clock from it every measureInterval, and notices a step of the wall
// clock that much later. When decisions are many, even that is too often: coarse
// then returns a time that a timer updates.
type clock struct {
	read    func() time.Time // in place of the system's clock; nil: the system's
	start   time.Time
	offset  atomic.Int64 // wall clock less time since start
	measure atomic.Int64 // time since start at which the offset is measured again
	reads   atomic.Int64 // calls of coarse that had to read, since the last measurement

	_          [64]byte
	coarseTime atomic.Int64 // the time that the timer updates; 0: no timer runs
	coarseRead atomic.Bool  // coarseTime was read since the last tick
	timer      atomic.Pointer[time.Timer]
	_          [40]byte
}

const (
	measureInterval = 10 * time.Millisecond
	tickInterval    = time.Millisecond
	busyReads       = 2000 // reads within a measureInterval that are worth a timer
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
func (c *clock) now() instant {
	if c.read != nil {
		return instant(min(nanoseconds(c.read()), latest))
	}
	since := int64(time.Since(c.start))
	if since >= c.measure.Load() {
		since = c.measureOffset()
	}
	return instant(c.offset.Load() + since)
}

// measureOffset sets the offset and returns the time since start. It takes both
// clocks from one reading: a goroutine that is stopped between two would set the
// clock ahead. Callers that race store nearly the same values.
func (c *clock) measureOffset() (since int64) {
	now := time.Now()
	since = int64(now.Sub(c.start))
	c.measure.Store(since + int64(measureInterval))
	c.reads.Store(0)
	c.offset.Store(min(max(now.UnixNano(), earliest), latest) - since)
	return since
}

// coarse returns the time, or one that is late, and never early. It is late by a
// tick, and by as long as the scheduler delays the timer.
func (c *clock) coarse() instant {
	if t := c.coarseTime.Load(); t != 0 {
		if !c.coarseRead.Load() {
			c.coarseRead.Store(true)
		}
		return instant(t)
	}
	now := c.now()
	if c.read == nil && c.reads.Add(1) == busyReads {
		c.startTimer(now)
	}
	return now
}

// startTimer starts a timer that updates coarseTime until no request reads it.
func (c *clock) startTimer(now instant) {
	if !c.coarseTime.CompareAndSwap(0, int64(now)) {
		return
	}
	t := time.AfterFunc(time.Hour, c.tick)
	c.timer.Store(t)
	t.Reset(tickInterval)
}

func (c *clock) tick() {
	if !c.coarseRead.Swap(false) {
		c.coarseTime.Store(0)
		return
	}
	c.coarseTime.Store(int64(c.now()))
	c.timer.Load().Reset(tickInterval)
}
