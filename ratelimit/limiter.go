package ratelimit

import (
	"context"
	"errors"
	"time"

	"github.com/animalstore/gatehouse/internal/plan"
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
// Engines count usage, and usage belongs to a subject and a window, never to a
// plan. A window opens with the first request that is charged to it. From then on
// until it ends it counts all that the subject uses under any plan, also if that
// request was refunded, so that a change of plan never grants a second quota. Up to eight windows of a subject are
// counted at once. An open calendar window keeps its end if the billing day or the time
// zone changes.
//
// # Clocks that jump
//
// A clock that steps back grants nothing twice: a window that now lies in the
// future stays open, but at most one window ahead; a calendar window ends at most two of
// its stand-in lengths from now, and of a smooth quota a subject owes at most the limit.
// The next request of a banned subject shortens its ban to the length that the ban had
// when it began, counted from that request.
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
	ErrInvalid = plan.ErrInvalid

	// ErrCostExceedsLimit wraps ErrInvalid: the request costs more than a quota
	// of the plan allows in a whole window, so that it can never be admitted.
	ErrCostExceedsLimit = plan.ErrCostExceedsLimit

	// ErrUnavailable is wrapped by the errors of an engine that failed: its store
	// does not answer, or it has no room for another subject.
	ErrUnavailable = errors.New("ratelimit: unavailable")
)

// A Peeker reports the usage of a subject. Engines may implement it.
type Peeker interface {
	// Peek returns the outcome that a request of one unit would have, with
	// Remaining and StrikesLeft as they are before it. It charges nothing and is not
	// a strike: Struck and BanStarted are false. If the request would start a ban, Peek
	// returns Limited with StrikesLeft 0, and Take would return Banned.
	Peek(ctx context.Context, subject string, plan *Plan) (Decision, error)
}

// A Resetter forgets a subject: usage, strikes and ban. Engines may implement it.
type Resetter interface {
	// Reset forgets subject. An adjustment of a charge that was made before changes the
	// window that was opened since, see [Adjuster].
	Reset(ctx context.Context, subject string) error
}

// An Adjuster changes what a charge costs after it was made: to refund it, to settle a cost
// that is known only afterwards, or by hand. Engines may implement it.
type Adjuster interface {
	// Adjust makes the charge that d is the decision about cost units in all, 0 or more,
	// in place of d.Cost. It changes those windows that the charge has reached, whatever
	// the plan and the clock are by now: for each quota of d.Plan the window that ends at
	// d.States[i].Reset, unless that is 0, and those in d.Others. What has ended is left as
	// it is. If d is not Allowed, nothing was charged, and Adjust does nothing. To adjust a
	// charge again, set d.Cost to the units that it costs now.
	//
	// No window holds less than 0 units or more than [MaxLimit]. Units can be added beyond
	// a limit, and during a ban. An adjustment is not a request: it is not a strike, starts
	// no ban and clears no strikes.
	//
	// If a window of the charge is not open here, as after a restart without the state of
	// the engine, or for a charge that another engine has made, added units open it. If a
	// window of its kind is open that ends at another time:
	//
	//   - A fixed window that ends later was opened after the charge, and is not changed.
	//   - A calendar window that ends later began under another plan, and counts the charge.
	//     One that ends so much later that it follows the charge's gives no units back.
	//   - A window that ends earlier counts the charge: a clock was ahead, or stepped back.
	//     If d.Time is not before its end, added units also move its end to that of the
	//     charge, by at most one window.
	//
	// A bucket of a smooth quota does not remember its charges. Added units are charged now.
	// Units that have come back by themselves are not given back: those that a bucket without
	// other charges would hold again.
	//
	// If the answer of an engine elsewhere is lost, repeat the call with the same arguments.
	// With an id, a random text, such an engine changes nothing twice: it remembers the id
	// for at least a minute, and until the last of the windows has ended, of a smooth quota
	// for its Window. With an empty id it remembers nothing. An engine in this process loses
	// no answer, and ignores the id.
	//
	// To give back units that no decision at hand was charged, as an operator does, pass
	// what Peek returns, with the Outcome set to Allowed and the Cost to these units. They
	// are given back to all quotas of its Plan: for the month alone, Peek under a plan of
	// the month. To add units that were used elsewhere, set the Outcome to Allowed and the
	// Cost to 0; Uncounted of package engine returns such a decision. To add other numbers to each
	// quota, make one call for each, with the Reset of the others set to 0.
	Adjust(ctx context.Context, subject string, d *Decision, units int64, id string) error
}

// A Banner bans and unbans subjects by hand. Engines may implement it.
type Banner interface {
	// Ban bans subject for the given time from now, rounded up to a whole
	// second, and replaces any ban in force. It does not raise the level of later
	// bans. The time without a ban that lowers the level counts anew from the end of each
	// ban, which may be one made by hand. The answer to banned requests gives the
	// usual reason for a ban, requests after a limit; Options.Deny can give another.
	Ban(ctx context.Context, subject string, length time.Duration) error
	// Unban ends the ban of subject, and forgets its strikes and its level. It reports
	// whether a ban was in force.
	Unban(ctx context.Context, subject string) (bool, error)
	// Bans returns the bans in force, in no particular order.
	Bans(ctx context.Context) ([]Ban, error)
}

// A Ban is the ban of one subject.
type Ban struct {
	Subject string
	Ends    time.Time

	// Level is 1 for the first ban, and rises with each ban that follows too soon.
	// A ban made by hand keeps the level of the one before it, or has 0.
	Level int
}
