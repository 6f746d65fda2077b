package failover

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A breaker lets many goroutines use one circuit. While all is well they only
// read one word: as long as none of the last 64 calls failed, one more success
// changes nothing.
type breaker struct {
	view atomic.Uint64 // what admits requests, as a view

	mu      sync.Mutex
	circuit circuit
	changes []Change        // not yet passed on to OnChange
	plan    *ratelimit.Plan // of the last call that failed

	refusal atomic.Pointer[error] // of mode Closed, while the circuit is open
	opened  atomic.Uint64
}

// A view is the circuit at a glance: the state, whether all that it remembers
// are successes, and the epoch.
type view uint64

const (
	viewState = view(3)
	viewClean = view(4)
	viewShift = 3
)

func (v view) admits() bool  { return v&viewState == view(CircuitClosed) }
func (v view) epoch() uint64 { return uint64(v >> viewShift) }

func (b *breaker) init(c circuit) {
	b.circuit = c
	b.publish()
}

func (b *breaker) look() view { return view(b.view.Load()) }

// publish follows every change of the circuit, under the lock.
func (b *breaker) publish() {
	v := view(b.circuit.epoch)<<viewShift | view(b.circuit.state)
	if b.circuit.clean() {
		v |= viewClean
	}
	b.view.Store(uint64(v))
}

// succeeded enters the success of a call that began under v.
func (b *breaker) succeeded(v view) {
	if v |= viewClean; b.look() == v {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.circuit.report(false, v.epoch(), time.Time{})
	b.publish()
}

// failed enters the failure of a call that began under v. It reports whether
// that opened the circuit.
func (b *breaker) failed(v view, plan *ratelimit.Plan, cause error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.plan = plan
	now := time.Now()
	opens := b.circuit.report(true, v.epoch(), now)
	if opens {
		b.opened.Add(1)
		b.changed(CircuitClosed, now, cause)
	}
	b.publish()
	return opens
}

// probe begins a probe, and returns the plan to use for it.
func (b *breaker) probe() *ratelimit.Plan {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.circuit.probe()
	b.changed(CircuitOpen, time.Now(), nil)
	b.publish()
	return b.plan
}

// planOfProbe returns the plan to use for a probe: that of the last failure.
func (b *breaker) planOfProbe() *ratelimit.Plan {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.plan
}

// probed enters the outcome of the probe.
func (b *breaker) probed(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.circuit.probed(cause != nil, now)
	b.changed(CircuitHalfOpen, now, cause)
	b.publish()
}

// changed notes a change for OnChange, under the lock.
func (b *breaker) changed(from Circuit, now time.Time, cause error) {
	if cause != nil {
		refusal := fmt.Errorf("failover: %w: the circuit is open after: %w", ratelimit.ErrUnavailable, cause)
		b.refusal.Store(&refusal)
	}
	b.changes = append(b.changes, Change{From: from, To: b.circuit.state, Time: now, Cause: cause})
}

// news returns the changes that were not returned before.
func (b *breaker) news() []Change {
	b.mu.Lock()
	defer b.mu.Unlock()
	changes := b.changes
	b.changes = nil
	return changes
}

// wait returns how long to wait before the next probe: at least half, and at
// most all of what the circuit says.
func (b *breaker) wait() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.circuit.wait - rand.N(b.circuit.wait/2)
}

func (b *breaker) state() Circuit { return Circuit(b.look() & viewState) }
