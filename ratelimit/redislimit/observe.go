package redislimit

import "time"

// A Batch is one call of the script, as [Options.Observe] gets it.
type Batch struct {
	// Requests is how many requests the call is made for, at least 1: one or more for
	// each of up to 64 subjects. A refund that the engine makes by itself counts, and so
	// does each subject that [Limiter.Bans] reads.
	Requests int

	// Duration is the time from sending the call to its reply or its failure. It is the
	// same for all calls that are sent in one pipeline.
	Duration time.Duration

	// Err is the error of the client; nil if the script answered. After some errors, such
	// as NOSCRIPT and those of a slot that moves, the engine makes another call, which is
	// observed as well. The text may name keys, which contain the names of subjects.
	Err error
}

// observeAll reports commands that were sent at the given time.
func (s *sender) observeAll(cmds []*command, sent time.Time) {
	if s.observe == nil {
		return
	}
	took := time.Since(sent)
	for _, cmd := range cmds {
		requests := 0
		for _, g := range cmd.groups {
			requests += int(g.requests)
		}
		s.observe(Batch{Requests: requests, Duration: took, Err: cmd.Err()})
	}
}
