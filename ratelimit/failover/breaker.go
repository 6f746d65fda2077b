package failover

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/partial"
)

// A breaker lets many goroutines use one circuit. While the primary works they only
// read one word: as long as none of the last 64 calls failed, one more success
// changes nothing.
type breaker struct {
	view                       atomic.Uint64 // the circuit, as a view
	failures, timeouts, opened atomic.Uint64

	// refusal is the error of requests while the circuit is open. It is made when
	// the circuit opens, so that a refused request allocates nothing.
	refusal atomic.Pointer[error]

	// plan is that of the last call that failed. The primary is probed with it.
	plan atomic.Pointer[ratelimit.Plan]

	// opening is the change that opened the circuit, until OnChange is called.
	opening atomic.Pointer[Change]

	mu      sync.Mutex
	circuit circuit
}

// A view is the circuit at a glance: the state, whether it is clean, and the epoch.
type view uint64

const viewState, viewClean, viewShift = view(3), view(4), 3

func (v view) state() Circuit { return Circuit(v & viewState) }
func (v view) closed() bool   { return v.state() == CircuitClosed }
func (v view) epoch() uint64  { return uint64(v >> viewShift) }

func (b *breaker) init(opts *Options) {
	b.circuit = circuit{
		consecutive: opts.ConsecutiveFailures, recent: opts.RecentFailures,
		minBackoff: opts.MinBackoff, maxBackoff: opts.MaxBackoff,
	}
	b.publish()
}

func (b *breaker) look() view { return view(b.view.Load()) }

// publish shows a change of the circuit. The lock is held.
func (b *breaker) publish() {
	v := view(b.circuit.epoch)<<viewShift | view(b.circuit.state)
	if b.circuit.clean() {
		v |= viewClean
	}
	b.view.Store(uint64(v))
}

// succeeded records the success of a call that began under v.
func (b *breaker) succeeded(v view) {
	if v |= viewClean; b.look() == v {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.circuit.report(false, v.epoch(), time.Time{})
	b.publish()
}

// failed records the failure of a call that began under v. It reports whether that
// opened the circuit.
func (b *breaker) failed(v view, plan *ratelimit.Plan, cause error) (opens bool) {
	b.failures.Add(1)
	if errors.Is(cause, errTimeout) {
		b.timeouts.Add(1)
	}
	if errors.Is(cause, partial.ErrOutage) {
		return false // the primary may answer others
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.publish()
	b.plan.Store(plan)
	now := time.Now()
	if opens = b.circuit.report(true, v.epoch(), now); opens {
		b.opened.Add(1)
		c := b.change(CircuitClosed, now, cause)
		b.opening.Store(&c)
	}
	return opens
}

// probing records that a probe begins.
func (b *breaker) probing() Change {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.publish()
	b.circuit.probe()
	return b.change(CircuitOpen, time.Now(), nil)
}

// probed records the outcome of the probe.
func (b *breaker) probed(cause error) Change {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.publish()
	now := time.Now()
	b.circuit.probed(cause != nil, now)
	return b.change(CircuitHalfOpen, now, cause)
}

func (b *breaker) change(from Circuit, now time.Time, cause error) Change {
	if cause != nil {
		refusal := fmt.Errorf("failover: %w: the circuit is open; last failure: %w", ratelimit.ErrUnavailable, cause)
		b.refusal.Store(&refusal)
	}
	return Change{From: from, To: b.circuit.state, Time: now, Cause: cause}
}

// backoff returns how long to wait before the next probe: from half to all of what
// the circuit says.
func (b *breaker) backoff() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.circuit.wait - rand.N(b.circuit.wait/2)
}
