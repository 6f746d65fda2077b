package ratelimit

import (
	"context"
	"errors"
	"fmt"
)

// A Limiter decides requests. Package memory is exact, bounded and has no
// dependencies. Package redislimit makes the same decisions in Redis, for any number
// of processes, and package failover goes in front of it. Packages redisrate and
// ululelimit adapt other libraries, and say what these cannot do. All are safe for
// concurrent use. Engines written elsewhere are tested with package enginetest.
//
// # Windows
//
// Windows are fixed and aligned to the UTC clock, or to a calendar. Up to twice a limit
// can therefore pass within one window's length, across its boundary; a second quota
// with a shorter window bounds such a burst. A smooth quota has no boundaries; see
// [Quota.Smooth].
//
// Engines count usage, and usage belongs to a subject and a window, never to a plan. A window
// opens with the first request that is charged to it. From then on until it ends it counts all
// that the subject uses under any plan, also if that request was refunded. So a change of plan
// never grants a second quota. Up to eight windows of a subject are counted at once. An open
// calendar window keeps its end if the billing day or the time zone changes.
//
// # Clocks that jump
//
// A clock that steps back grants nothing of an open window twice: a window that now lies in
// the future stays open, but at most one window ahead. A calendar window then ends at most two
// of its stand-in lengths from now. Under a smooth quota a subject owes at most the limit. A
// window that has ended may be forgotten. If the clock then steps back over its end, its limit
// is granted again. The next request of a banned subject shortens its ban to the length that
// the ban had when it began, counted from that request.
type Limiter interface {
	// Take charges cost units to subject under plan: to every quota, or to none if
	// the request is denied. N concurrent calls against a limit of L admit exactly
	// L. A denial is a Decision; an error means that the engine could not decide,
	// and that nothing was charged as far as the engine knows. Errors wrap
	// [ErrInvalid] if the call is wrong, and [ErrUnavailable] if the engine failed.
	Take(ctx context.Context, subject string, plan *Plan, cost int64) (Decision, error)
}

var (
	// ErrInvalid is wrapped by the errors of invalid calls: no plan, no subject,
	// a cost below 1 or over a limit. Such a call is an error in every failure
	// mode, never an admission.
	ErrInvalid = errors.New("ratelimit: invalid call")

	// ErrCostExceedsLimit wraps ErrInvalid: the request costs more than a quota
	// of the plan allows at once, so that it can never be admitted.
	ErrCostExceedsLimit = fmt.Errorf("%w: cost exceeds limit", ErrInvalid)

	// ErrUnavailable is wrapped by the errors of an engine that failed: its store
	// does not answer, or it has no room for another subject.
	ErrUnavailable = errors.New("engine unavailable")
)
