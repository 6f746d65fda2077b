package redislimit

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Options of a [Limiter]. The zero value works.
type Options struct {
	// Prefix begins the name of every key, so that several sets of subjects can
	// share one Redis. It has at most 64 bytes and no braces; "" means "gatehouse".
	// All processes that limit together use the same prefix.
	Prefix string

	// MaxInFlight is how many batches are in flight to one master at most, 1 to 64; 0
	// means 8. A second one is sent only if a round trip takes 250 microseconds, a third
	// only if it takes 500, and so on. Give the pool of the client at least as many
	// connections.
	MaxInFlight int

	// Observe is called after each call of the script, for metrics. It runs on the
	// goroutine that made the call, before the requests are answered, and without a lock.
	// It must be safe for concurrent use and quick, since the requests and the next batch
	// wait for it, and it must not call the Limiter. Nil works.
	Observe func(Batch)

	// Logger gets one warning for each server that evicts keys when its memory is
	// full, since that grants quotas twice. It also gets a warning when a master of a
	// cluster does not answer, and a line when requests for its subjects are decided
	// again. Nil means [slog.Default].
	Logger *slog.Logger
}

func (o Options) validate() error {
	switch {
	case strings.ContainsAny(o.Prefix, "{}"):
		return fmt.Errorf("redislimit: Options.Prefix must have no braces, got %q", o.Prefix)
	case len(o.Prefix) > 64:
		return fmt.Errorf("redislimit: Options.Prefix must have at most 64 bytes, got %d", len(o.Prefix))
	case o.MaxInFlight < 0 || o.MaxInFlight > 64:
		return fmt.Errorf("redislimit: Options.MaxInFlight must be from 1 to 64, or 0 for the default, got %d", o.MaxInFlight)
	}
	return nil
}

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
