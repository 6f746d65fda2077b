package memory

import (
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

// A unixMilli is a time in Unix milliseconds.
type unixMilli int64
