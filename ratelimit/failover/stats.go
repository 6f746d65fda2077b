package failover

// Stats count what the primary and the mode did. All but Pending only grow.
type Stats struct {
	Fallbacks uint64 // decisions that the primary did not make
	Failures  uint64 // calls of the primary for a decision that failed
	Timeouts  uint64 // those of them that did not answer within the budget
	Opened    uint64 // times the circuit opened; failed probes are not counted
	Merged    uint64 // subjects merged into the primary
	Lost      uint64 // admitted requests that the journal had no room for; see Options.JournalSize
	Dropped   uint64 // charges in the journal that the primary found invalid
	Pending   int64  // subjects in the journal
}

// Stats returns the present numbers.
func (l *Limiter) Stats() Stats {
	return Stats{
		Fallbacks: l.fallbacks.Load(),
		Failures:  l.breaker.failures.Load(),
		Timeouts:  l.breaker.timeouts.Load(),
		Opened:    l.breaker.opened.Load(),
		Merged:    l.journal.merged.Load(),
		Lost:      l.journal.lost.Load(),
		Dropped:   l.merger.dropped.Load(),
		Pending:   l.journal.held.Load(),
	}
}

// Circuit returns the state of the circuit: if it is closed the primary decides,
// otherwise the mode. The readiness of a service may depend on it.
func (l *Limiter) Circuit() Circuit { return l.breaker.look().state() }

// Mode returns the mode, which decides while the circuit is not closed.
func (l *Limiter) Mode() Mode { return l.mode }
