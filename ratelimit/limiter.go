package ratelimit

import (
	"context"
	"errors"
	"time"
)

// A Limiter decides requests. Engines are safe for concurrent use.
type Limiter interface {
	// Take charges cost units to subject under plan: every quota, or none. N
	// concurrent calls against a limit of L admit exactly L. A denial is a
	// Decision; an error means that the engine could not decide, and then
	// nothing was charged as far as it knows. Errors wrap [ErrInvalid] where the
	// call itself is wrong, and [ErrUnavailable] where the engine is.
	Take(ctx context.Context, subject string, plan *Plan, cost int64) (Decision, error)
}

var (
	// ErrInvalid is wrapped by errors that are the caller's: no plan, a cost
	// under one, or one that no window of the plan can ever hold.
	ErrInvalid = errors.New("ratelimit: invalid call")

	// ErrUnavailable is wrapped by errors that are the engine's: its store does
	// not answer, or it has no room for one more subject.
	ErrUnavailable = errors.New("ratelimit: unavailable")
)

// A Peeker tells where a subject stands. An engine may have it.
type Peeker interface {
	// Peek returns the decision that Take would return for a request of one
	// unit, but charges nothing and strikes nobody: Remaining is what is left
	// before that request.
	Peek(ctx context.Context, subject string, plan *Plan) (Decision, error)
}

// A Resetter forgets a subject: usage, strikes and ban. An engine may have it.
type Resetter interface {
	Reset(ctx context.Context, subject string) error
}

// A Refunder gives units back. An engine may have it.
type Refunder interface {
	// Refund gives back what d, an Allowed decision for subject, was charged, in
	// those of its windows that have not ended. To refund one decision twice is
	// the caller's error, but never takes usage below zero.
	Refund(ctx context.Context, subject string, d *Decision) error
}

// A Charger takes in usage that was admitted elsewhere. An engine may have it.
type Charger interface {
	// Charge adds units[i] to what subject has used in the window of plan's i-th
	// quota that the time at lies in, unless that window has ended, whether or
	// not they fit. It is no request: it neither strikes nor bans, clears no
	// strikes, and is done during a ban as well. No count goes over [MaxLimit].
	Charge(ctx context.Context, subject string, plan *Plan, units [MaxQuotas]int64, at time.Time) error
}

// A Banner bans by hand. An engine may have it.
type Banner interface {
	// Ban bans subject for the given time from now, rounded up to a whole
	// second, in place of any ban in force. It does not make later bans longer.
	Ban(ctx context.Context, subject string, length time.Duration) error
	// Lift ends a ban, and forgets the strikes and all that would make the next
	// ban longer. It reports whether there was a ban in force.
	Lift(ctx context.Context, subject string) (bool, error)
	// Bans returns the bans in force, in no particular order.
	Bans(ctx context.Context) ([]Ban, error)
}

// A Ban is one subject's ban.
type Ban struct {
	Subject string
	Ends    time.Time
	Level   int // 1 for the first ban, one more for each that followed too soon; 0: made by hand
}
