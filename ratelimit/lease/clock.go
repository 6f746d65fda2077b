package lease

import "time"

// A clock tells how long a process has run, in nanoseconds, and never less than that: by
// the monotonic clock, which stands still while a machine is suspended, or by the wall
// clock, which does not, whichever has gone further since the last reading. So a share ends
// too early after the wall clock was set forward, and never too late.
type clock struct {
	read             func() (mono, wall int64)
	mono, wall, runs int64
}

// system reads the two clocks of the system, in nanoseconds.
func system() (mono, wall int64) {
	now := time.Now()
	return int64(now.Sub(began)), now.UnixNano()
}

var began = time.Now()

func (c *clock) init(read func() (mono, wall int64)) {
	c.read = read
	c.mono, c.wall = read()
}

func (c *clock) now() int64 {
	mono, wall := c.read()
	c.runs += max(mono-c.mono, wall-c.wall, 0)
	c.mono, c.wall = mono, wall
	return c.runs
}
