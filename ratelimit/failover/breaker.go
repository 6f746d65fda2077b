package failover

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/partial"
)

// A breaker lets many goroutines use one circuit. While the primary works they only
// read it: as long as none of the last 64 calls failed, one more success changes nothing.
type breaker struct {
	failures, timeouts, opened atomic.Uint64

	// plan is the plan of the last call that failed. The primary is probed with it.
	plan atomic.Pointer[ratelimit.Plan]

	// opening is the failure that opened the circuit, until OnChange is called.
	opening atomic.Pointer[error]

	mu    sync.Mutex // held while the circuit changes
	state atomic.Pointer[circuit]
}

func (b *breaker) init(opts *Options) {
	b.state.Store(&circuit{
		consecutive: opts.ConsecutiveFailures, recent: outcomes / 2,
		minBackoff: opts.Backoff, maxBackoff: max(opts.Backoff, min(50*opts.Backoff, time.Hour)),
	})
}

// current returns the circuit, to be read only: a change replaces it.
func (b *breaker) current() *circuit { return b.state.Load() }

// change replaces the circuit with a copy that f has changed.
func (b *breaker) change(f func(*circuit)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := *b.current()
	f(&c)
	b.state.Store(&c)
}

// succeeded records the success of a call that began in the given epoch.
func (b *breaker) succeeded(epoch uint64) {
	if b.current().clean() { // so is an open one: it has forgotten the failures
		return
	}
	b.change(func(c *circuit) { c.report(false, epoch, time.Time{}) })
}

// failed records the failure of a call that began in the given epoch. It reports whether
// that opened the circuit.
func (b *breaker) failed(epoch uint64, plan *ratelimit.Plan, cause error) (opens bool) {
	b.failures.Add(1)
	if errors.Is(cause, errTimeout) {
		b.timeouts.Add(1)
	}
	b.plan.Store(plan)
	if errors.Is(cause, partial.ErrOutage) {
		return false // the primary may answer others
	}
	b.change(func(c *circuit) {
		if opens = c.report(true, epoch, time.Now()); opens {
			b.opened.Add(1)
			c.refuse(cause)
			b.opening.Store(&cause)
		}
	})
	return opens
}

// probed records the outcome of a probe.
func (b *breaker) probed(cause error) {
	b.change(func(c *circuit) {
		c.probed(cause != nil, time.Now())
		c.refuse(cause)
	})
}

// backoff returns how long to wait before the next probe: from half to all of what
// the circuit says. With the lock it knows the change that opening belongs to.
func (b *breaker) backoff() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := b.current().wait
	return wait - rand.N(wait/2)
}

// outcomes is how many outcomes the circuit remembers.
const outcomes = 64

// circuit is the breaker's rules: states and arithmetic, without a clock, a lock
// or a goroutine. The caller says what happened and when.
//
// One stall of the primary, or of this process, fails every call that is in flight, and so does one
// broken connection. Failures that overlap therefore count as one: a failure counts only if its
// call began after the last failure that counted was known. Each failure that does not count keeps
// one success from counting, so that the share of failures stays the same.
type circuit struct {
	consecutive, recent    int           // failures that open it: in a row, and of the last 64
	minBackoff, maxBackoff time.Duration // the shortest and the longest wait before a probe or a merge

	open bool
	// epoch counts the changes and the failures that counted. A call keeps the epoch
	// in which it began.
	epoch    uint64
	changed  uint64        // the epoch that began with the last change
	failed   int           // in a row, of those that counted
	failures uint64        // one bit for each of the last outcomes, 1 if it failed, the latest lowest
	overlaps int           // failures that did not count, less successes that did not; at most 64
	wait     time.Duration // before the next probe
	closed   time.Time     // when the circuit last closed; zero: it was never open

	// refusal is the error of requests while the circuit is open. It is made when
	// the circuit opens, so that a refused request allocates nothing.
	refusal error
}

// report records the outcome of a call that began in the given epoch, and reports whether that
// opens the circuit. The outcome of a call that began before the last change is ignored.
func (c *circuit) report(failed bool, epoch uint64, now time.Time) (opens bool) {
	switch {
	case c.open || epoch < c.changed:
		return false
	case !failed:
		c.failed = 0
		if c.overlaps > 0 {
			c.overlaps--
		} else {
			c.failures <<= 1
		}
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
	c.change(true)
	return true
}

// clean reports whether one more success changes nothing.
func (c *circuit) clean() bool { return c.failures == 0 && c.overlaps == 0 }

// probed records the outcome of a probe of the primary behind an open circuit.
func (c *circuit) probed(failed bool, now time.Time) {
	if failed {
		c.wait = c.longer()
		return
	}
	c.closed = now
	c.change(false)
}

// refuse makes the error of requests while the circuit is open because of cause.
func (c *circuit) refuse(cause error) {
	if cause != nil {
		c.refusal = fmt.Errorf("failover: %w: the circuit is open; last failure: %w", ratelimit.ErrUnavailable, cause)
	}
}

func (c *circuit) longer() time.Duration { return min(2*c.wait, c.maxBackoff) }

func (c *circuit) change(open bool) {
	c.open = open
	c.failed, c.failures, c.overlaps = 0, 0, 0
	c.epoch++
	c.changed = c.epoch
}
