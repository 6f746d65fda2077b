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
	// that a charge whose answer was lost can be repeated. The engine's
	// documentation says for how long it remembers a mark, which is at least a
	// minute. A mark is a random text, and an empty one is invalid.
	ChargeOnce(ctx context.Context, mark, subject string, plan *Plan, units [MaxQuotas]int64, at time.Time) error
}
