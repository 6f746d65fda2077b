package lease

import "time"

// A clock tells how long a process has run, in nanoseconds, and never less than that: by
// the monotonic clock, which stands still while a machine is suspended, or by the wall
// clock, which does not, whichever has gone further since the last reading. So a share ends
// too early after the wall clock was set forward, and never too late.
type clock struct {
	last reading
	runs int64
}

// A reading is what both clocks said at once, in nanoseconds.
type reading struct{ mono, wall int64 }

// system reads the clocks of the system.
func system() reading {
	now := time.Now()
	return reading{int64(now.Sub(began)), now.UnixNano()}
}

var began = time.Now()

// at returns the time of a reading. If there was a later one, it is the time of that.
func (c *clock) at(r reading) int64 {
	if r.mono >= c.last.mono {
		c.runs += max(r.mono-c.last.mono, r.wall-c.last.wall)
		c.last = r
	}
	return c.runs
}
