package ratelimit

import (
	"context"
	"time"
)

// A OnceCharger is a [Charger] that recognises a charge which is repeated. An
// engine may have it.
type OnceCharger interface {
	Charger
	// ChargeOnce does what Charge does, and remembers the mark. A later call
	// with the same subject and the same mark charges nothing and succeeds, so
	// that a charge whose answer was lost can be repeated, with the same units and
	// the same time. The engine remembers the mark for a minute at least, and until
	// the last window in which the charge counts has ended: a repetition charges
	// nothing after that either. A mark is a random text, and an empty one is
	// invalid.
	ChargeOnce(ctx context.Context, mark, subject string, plan *Plan, units [MaxQuotas]int64, at time.Time) error
}
