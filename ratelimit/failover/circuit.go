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
	CircuitHalfOpen                // the primary is being probed, and the mode decides
	CircuitOpen                    // the primary is not called, and the mode decides
)

// String returns "closed", "half-open" or "open".
func (c Circuit) String() string {
	if c > CircuitOpen {
		return fmt.Sprintf("Circuit(%d)", uint8(c))
	}
	return [...]string{"closed", "half-open", "open"}[c]
}

// outcomes is how many outcomes the circuit remembers.
const outcomes = 64

// circuit is the breaker's rules: states and arithmetic, without a clock, a lock
// or a goroutine. The caller says what happened and when.
//
// One stall of the primary, or of this process, fails every call that is in
// flight, and so does one broken connection. Failures that overlap therefore count
// as one: a failure counts only if its call began after the last failure that
// counted was known. Each failure that does not count keeps one success from
// counting, so that the share of failures stays the same.
type circuit struct {
	consecutive, recent    int           // failures that open it: in a row, and of the last 64
	minBackoff, maxBackoff time.Duration // the shortest and the longest wait before a probe

	state Circuit
	// epoch counts the changes and the failures that counted. A call keeps the epoch
	// in which it began.
	epoch    uint64
	changed  uint64        // the epoch that began with the last change
	failed   int           // in a row, of those that counted
	failures uint64        // one bit for each of the last outcomes, 1 if it failed, the latest lowest
	overlaps int           // failures that did not count, less successes that did not; at most 64
	wait     time.Duration // before the next probe
	closed   time.Time     // when the circuit last closed; zero: it was never open
}

// report records the outcome of a call that began in the given epoch, and reports
// whether that opens the circuit. The outcome of a call that began before the
// last change is ignored.
func (c *circuit) report(failed bool, epoch uint64, now time.Time) (opens bool) {
	switch {
	case c.state != CircuitClosed || epoch < c.changed:
		return false
	case !failed:
		c.succeed()
		return false
	case epoch < c.epoch:
		c.overlaps = min(c.overlaps+1, outcomes)
		return false
	}
	c.epoch++
	c.failed++
	c.failures = c.failures<<1 | 1
	if c.failed < c.consecutive && bits.OnesCount64(c.failures) < c.recent {
		return false
	}
	// If the primary fails soon after the circuit closed, it answers probes but not
	// requests. The wait before the next probe doubles, as if the probe had failed.
	if !c.closed.IsZero() && now.Sub(c.closed) < c.maxBackoff {
		c.wait = c.longer()
	} else {
		c.wait = c.minBackoff
	}
	c.change(CircuitOpen)
	return true
}

func (c *circuit) succeed() {
	c.failed = 0
	if c.overlaps > 0 {
		c.overlaps--
		return
	}
	c.failures <<= 1
}

// clean reports whether one more success changes nothing.
func (c *circuit) clean() bool { return c.failures == 0 && c.overlaps == 0 }

// probe records that the primary behind an open circuit is being probed.
func (c *circuit) probe() { c.change(CircuitHalfOpen) }

// probed records the outcome of the probe.
func (c *circuit) probed(failed bool, now time.Time) {
	if failed {
		c.wait = c.longer()
		c.change(CircuitOpen)
		return
	}
	c.closed = now
	c.change(CircuitClosed)
}

func (c *circuit) longer() time.Duration { return min(2*c.wait, c.maxBackoff) }

func (c *circuit) change(to Circuit) {
	c.state = to
	c.failed, c.failures, c.overlaps = 0, 0, 0
	c.epoch++
	c.changed = c.epoch
}
