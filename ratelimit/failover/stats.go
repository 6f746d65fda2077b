package failover

import "sync/atomic"

// counters count what is not the common case, which pays for none of them.
type counters struct {
	fallbacks, failures, timeouts, late atomic.Uint64
}

// Stats count what the primary and the fallback did. All but Pending only grow.
type Stats struct {
	Fallbacks uint64 // requests that the primary did not decide
	Failures  uint64 // decisions that the primary did not give, or not in time
	Timeouts  uint64 // those of them that exceeded the budget
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

// Circuit returns the state of the circuit: the primary decides if it is closed,
// otherwise the mode. Readiness of a service may depend on it.
func (l *Limiter) Circuit() Circuit { return l.breaker.state() }

// Mode returns the mode, which decides while the circuit is not closed.
func (l *Limiter) Mode() Mode { return l.mode }
