package failover

import "sync/atomic"

// counters count what is not the common case, which pays for none of them.
type counters struct {
	fallbacks, failures, timeouts, late atomic.Uint64
}

// Stats tell how the primary fares. But for Pending they only grow.
type Stats struct {
	Fallbacks uint64 // requests that the primary did not decide
	Failures  uint64 // decisions that the primary was asked for and failed to give, in time or at all
	Timeouts  uint64 // those of them that were not there within the budget
	Late      uint64 // charges that the primary made after the budget, for requests that were decided without it
	Opened    uint64 // times the circuit opened, probes not counted
	Merged    uint64 // subjects merged into the primary
	Lost      uint64 // times the journal had no room for a request, or dropped a subject to make room
	Dropped   uint64 // subjects' usages and orders that the primary found invalid, or kept refusing
	Pending   int64  // subjects in the journal
}

// Stats returns the present numbers.
func (l *Limiter) Stats() Stats {
	return Stats{
		Fallbacks: l.fallbacks.Load(),
		Failures:  l.failures.Load(),
		Timeouts:  l.timeouts.Load(),
		Late:      l.late.Load(),
		Opened:    l.breaker.opened.Load(),
		Merged:    l.merger.merged.Load(),
		Lost:      l.journal.lost.Load(),
		Dropped:   l.journal.dropped.Load(),
		Pending:   l.journal.held.Load(),
	}
}

// Circuit returns the state of the circuit: who decides now. A service that is
// ready although it is not closed says by that that Mode is good enough.
func (l *Limiter) Circuit() Circuit { return l.breaker.state() }

// Mode returns who decides while the circuit is not closed.
func (l *Limiter) Mode() Mode { return l.mode }
