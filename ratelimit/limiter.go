package ratelimit

import (
	"context"
	"errors"
	"fmt"
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
	// ErrInvalid is wrapped by the errors of invalid calls: no plan, no subject,
	// a cost below 1 or over a limit. Such a call is an error in every failure
	// mode, never an admission.
	ErrInvalid = errors.New("ratelimit: invalid call")

	// ErrCostExceedsLimit wraps ErrInvalid: the request costs more than a quota
	// of the plan allows in a whole window, so that it can never be admitted.
	ErrCostExceedsLimit = fmt.Errorf("%w: cost exceeds limit", ErrInvalid)

	// ErrUnavailable is wrapped by errors that are the engine's: its store does
	// not answer, or it has no room for one more subject.
	ErrUnavailable = errors.New("ratelimit: unavailable")
)

// A Peeker reports where a subject stands. An engine may have it.
type Peeker interface {
	// Peek returns the outcome that a request of one unit would have, and
	// Remaining and StrikesLeft as they are before it. It charges nothing
	// and is not a strike. It does not foresee a ban that the request would
	// start: then Peek returns Limited with StrikesLeft 0, and Take Banned.
	Peek(ctx context.Context, subject string, plan *Plan) (Decision, error)
}

// A Resetter forgets a subject: usage, strikes and ban. An engine may have it.
type Resetter interface {
	Reset(ctx context.Context, subject string) error
}

// A Refunder gives units back. An engine may have it.
type Refunder interface {
	// Refund gives back what d, an Allowed decision for subject, was charged, in
	// those windows of d that are still open: for each quota of d.Plan the
	// window that ends at d.States[i].Reset. Windows of other plans, and windows
	// that were opened later, keep what they hold. If a decision is refunded
	// twice, which is the caller's error, usage never falls below zero.
	Refund(ctx context.Context, subject string, d *Decision) error
}

// A Banner bans and unbans subjects by hand. An engine may have it.
type Banner interface {
	// Ban bans subject for the given time from now, rounded up to a whole
	// second, and replaces any ban in force. It does not raise the level of later
	// bans. The quiet time that lowers it is counted from the end of the last ban,
	// which may be one made by hand.
	Ban(ctx context.Context, subject string, length time.Duration) error
	// Unban ends the ban of subject, and forgets its strikes and all that would make
	// the next ban longer. It reports whether a ban was in force.
	Unban(ctx context.Context, subject string) (bool, error)
	// Bans returns the bans in force, in no particular order.
	Bans(ctx context.Context) ([]Ban, error)
}

// A Ban is one subject's ban.
type Ban struct {
	Subject string
	Ends    time.Time

	// Level is 1 for the first ban, and one more for each that followed too soon.
	// A ban made by hand keeps the level of the one before it, or has 0.
	Level int
}
