package redislimit

import (
	"fmt"
	"log/slog"
	"strings"
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
