package ratelimittest

import (
	"sync"
	"time"
)

// A Clock is a time that the test moves. Its method Now is the option Now of package
// memory, and of everything else that reads the time through a function. It is safe for
// concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at start. Quotas count in windows of the UTC clock:
// a start in the middle of a minute, such as 12:00:30, leaves 30 s of it. Engines count
// from 1970 on: at an earlier time, as on the zero Clock, their windows never end.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set sets the time.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// Advance moves the time by d, which may be negative: back.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
