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
	// All processes that limit together use the same prefix. Other programs on the same
	// Redis need another one: with the same, subjects of one name share usage and bans.
	Prefix string

	// Observe is called after each call of the script, for metrics. It gets the number of
	// requests that the call was made for, and the time from sending it to its reply, which is
	// the same for all calls of one pipeline. The error is the one of the client, if the script
	// did not answer. The requests are one or more for each of up to 64 subjects; a refund that
	// the engine makes by itself counts, each renewal of a hold, and each subject that
	// [Limiter.Bans] reads.
	// After some errors, such as NOSCRIPT and the errors of a slot that moves, the engine makes
	// another call, which is observed as well. The text of an error may name keys, which
	// contain the names of subjects.
	//
	// Observe runs on the goroutine that made the call, before the requests are answered, and
	// without a lock. It must be safe for concurrent use and quick, since the requests and
	// the next batch wait for it, and it must not call the Limiter. Nil works.
	Observe func(requests int, took time.Duration, err error)

	// Logger gets a warning when a server begins to evict keys if its memory is full, since
	// that grants quotas twice. It gets one a minute while requests fail for some subjects
	// only: the subjects of one master of a cluster, or of keys that hold values that the
	// engine did not write. It also gets a warning when a master does not answer, and a line
	// when requests for its subjects are decided again. Nil means [slog.Default].
	Logger *slog.Logger
}

func (o Options) validate() error {
	switch {
	case strings.ContainsAny(o.Prefix, "{}"):
		return fmt.Errorf("redislimit: Options.Prefix must have no braces, got %q", o.Prefix)
	case len(o.Prefix) > 64:
		return fmt.Errorf("redislimit: Options.Prefix must have at most 64 bytes, got %d", len(o.Prefix))
	}
	return nil
}
