package failover

import (
	"fmt"
	"math/bits"
	"time"
)

// Circuit is the state of the circuit breaker.
type Circuit uint8

const (
	CircuitClosed   Circuit = iota // the primary decides
	CircuitHalfOpen                // it is being probed, and the fallback decides
	CircuitOpen                    // it is not called, and the fallback decides
)

// String returns "closed", "half-open" or "open".
func (c Circuit) String() string {
	switch c {
	case CircuitClosed:
		return "closed"
	case CircuitHalfOpen:
		return "half-open"
	case CircuitOpen:
		return "open"
	}
	return fmt.Sprintf("Circuit(%d)", uint8(c))
}

// outcomes is how many calls the circuit remembers.
const outcomes = 64

// circuit is the breaker's rules: states and arithmetic, without a clock, a lock
// or a goroutine. The caller says what happened and when.
type circuit struct {
	row, share  int           // failures that open it: in a row, and of the last 64
	first, last time.Duration // the shortest and the longest wait before a probe

	state Circuit
	// generation counts the changes. The outcome of a call that began before the
	// last one says nothing about the primary as it is now.
	generation uint64
	failures   uint64        // one bit for each of the last calls, 1 if it failed, the latest lowest
	wait       time.Duration // before the next probe
	closed     time.Time     // when the circuit closed again; zero: it was never open
}

// report enters the outcome of a call that began in the given generation. It
// reports whether that opens the circuit.
func (c *circuit) report(failed bool, generation uint64, now time.Time) (opens bool) {
	if c.state != CircuitClosed || generation != c.generation {
		return false
	}
	c.failures <<= 1
	if !failed {
		return false
	}
	c.failures |= 1
	if bits.TrailingZeros64(^c.failures) < c.row && bits.OnesCount64(c.failures) < c.share {
		return false
	}
	// Who opens again soon after it closed answers probes and fails requests. It
	// is asked ever more seldom, as if the probe had failed.
	if !c.closed.IsZero() && now.Sub(c.closed) < c.last {
		c.wait = c.longer()
	} else {
		c.wait = c.first
	}
	c.change(CircuitOpen)
	return true
}

// probe says that an open circuit's primary is now being probed.
func (c *circuit) probe() { c.change(CircuitHalfOpen) }

// probed enters the outcome of the probe.
func (c *circuit) probed(failed bool, now time.Time) {
	if failed {
		c.wait = c.longer()
		c.change(CircuitOpen)
		return
	}
	c.closed = now
	c.change(CircuitClosed)
}

func (c *circuit) longer() time.Duration { return min(2*c.wait, c.last) }

func (c *circuit) change(to Circuit) {
	c.state = to
	c.failures = 0
	c.generation++
}
