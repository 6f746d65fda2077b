package ratelimit

import (
	"context"
	"time"
)

// A UsageAdder adds usage that was admitted elsewhere, such as by another engine
// during an outage. Engines may implement it.
type UsageAdder interface {
	// AddUsage adds units[i] to what subject has used in the window of plan's i-th
	// quota, whether or not they fit. The window is the one that the time at lies
	// in; if it has ended, the units are dropped. If it has not begun, because the
	// clock of at is ahead, the open window moves there, by at most one window, and
	// keeps its usage: this can limit the subject too early, but grants nothing
	// twice. Units from between start and end of an open calendar window count in it,
	// also if the calendar of plan has another window there.
	//
	// Of a smooth quota, units that have come back since at are not added, and none of
	// more than a Window ago. A time that is ahead counts as now. A subject owes at most
	// the limit.
	//
	// Added usage is not a request: it is not a strike, starts no ban and clears no
	// strikes. It is added during a ban as well. No window holds more than
	// [MaxLimit], which larger numbers of units count as. With 0 units a window stays as
	// it is. A negative number is an error that wraps [ErrInvalid], and adds nothing.
	AddUsage(ctx context.Context, subject string, plan *Plan, units [MaxQuotas]int64, at time.Time) error
}

// A OnceUsageAdder is a [UsageAdder] that recognises a repeated call. Engines may
// implement it.
type OnceUsageAdder interface {
	UsageAdder
	// AddUsageOnce does what AddUsage does, and remembers the id, an idempotency
	// key. A later call with the same subject and id adds nothing and succeeds.
	// If the response to a call was lost, the call can therefore be repeated, with
	// the same units and the same time. The engine remembers the id for at least a
	// minute, and until the last window that the units count in has ended, after
	// which a repetition adds nothing either. An id is a random text; an empty one
	// is invalid.
	AddUsageOnce(ctx context.Context, id, subject string, plan *Plan, units [MaxQuotas]int64, at time.Time) error
}
