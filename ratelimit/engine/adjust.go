package engine

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A Peeker reports the usage of a subject. Engines may implement it.
type Peeker interface {
	// Peek returns the outcome that a request of one unit would have, with
	// Remaining and StrikesLeft as they are before it. It charges nothing and is not
	// a strike. If the request would start a ban, Peek returns Limited with StrikesLeft 0,
	// and Take would return Banned.
	Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error)
}

// An Adjuster changes what a charge costs after it was made: to refund it, to settle a cost
// that is known only afterwards, or by hand. Engines may implement it.
type Adjuster interface {
	// Adjust makes the charge that d is the decision about cost units in all, 0 or more, in
	// place of d.Cost. It changes those windows that the charge has reached, whatever the plan
	// and the clock are by now. For each quota of d.Plan it is the window that ends at
	// d.States[i].Reset, unless that is 0. The others are in d.Receipt.Others. What has ended
	// is left as it is. If d is not Allowed, Adjust does nothing. To adjust a charge again, set
	// d.Cost to the units that it costs now.
	//
	// No window holds less than 0 units or more than 9007199254740991. Units can be added beyond
	// a limit, and during a ban. An adjustment is not a request: it is not a strike, starts
	// no ban and clears no strikes.
	//
	// If a window of the charge is not open here, as after a restart or for a charge of
	// another engine, added units open it. If one of its kind is open that ends at another time:
	//
	//   - A fixed window that ends later was opened after the charge, and is not changed.
	//   - A calendar window that ends later began under another plan, and counts the charge.
	//     One that ends so much later that it follows the charge's gives no units back.
	//   - A window that ends earlier counts the charge: a clock was ahead, or stepped back.
	//     If d.Time is not before its end, added units also move its end to the end
	//     of the charge's, by at most one window.
	//
	// To a smooth quota, added units are charged now. Units that have not come back by
	// themselves are given back immediately. There are two exceptions, which come back by
	// themselves: some units that an earlier Adjust has added, and some of a charge that more
	// than thirty other refunds of the subject overtake. No window of any length admits more
	// than it would have without the charge and its refund, unless usage is forgotten
	// meanwhile. That can be by a reset, beyond the limit, or as a clock steps back.
	//
	// If the answer of an engine elsewhere is lost, repeat the call with the same arguments.
	// With an id, a random text, such an engine changes nothing twice within ten minutes: then
	// it forgets the id. An engine in this process ignores the id.
	//
	// [AddUsage] adds or gives back units that belong to no decision.
	Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error
}

// A Holder makes charges that do not stay if their process dies: for requests whose cost is
// settled later. Engines may implement it.
type Holder interface {
	// Hold returns a view of the engine for one request. What its Take charges, and its
	// TakeAll if the engine is a [MultiTaker], is held under id, a random text of the request.
	// Without an id, or with another timeout than from 1s to 1h, they return an error that wraps
	// [ratelimit.ErrInvalid].
	//
	// Adjust of the engine ends the hold of a charge. Call it with the charge, the id, and what
	// the request costs in all, also if that is what it was charged. The process keeps its holds
	// alive. If the engine has not heard of one for the timeout, as after a crash, the hold ends by
	// itself: the units are given back once, to the windows that the charge reached. An engine may
	// wait with that until the next held charge or Peek of the subject, and does it before it
	// answers. A later Adjust charges the units of the request anew.
	//
	// Units of smooth quotas come back in any case. So they are not given back when a hold ends by
	// itself, and Adjust changes them by the difference.
	//
	// After an Adjust that failed, the hold is not kept alive, and the call can be repeated for
	// ten minutes. If the answer to a held charge is lost, or the context ends first, the charge
	// is held too, and given back after the timeout.
	Hold(id string, timeout time.Duration) ratelimit.Limiter
}

// AddUsage adds units that subject used at a time, or gives them back if units is negative. It
// does so in the windows of all quotas of the plan that the time lies in. It is for units that
// were used elsewhere, and for corrections by hand. The units count even beyond a limit, and no
// window falls below 0. Under a plan without quotas there is nothing to change. The id makes a
// repetition harmless, as in [Adjuster]; "" is none.
func AddUsage(ctx context.Context, a Adjuster, subject string, plan *ratelimit.Plan, units int64, at time.Time, id string) error {
	if err := plan.Check(subject, 1); err != nil {
		return err
	}
	d := Uncounted(plan, max(-max(units, -math.MaxInt64), 0), at)
	return a.Adjust(ctx, subject, &d, max(units, 0), id)
}

// Adjustment checks the arguments of [Adjuster], and returns by how many units
// the cost changes: less than 0 to give back, and 0 if there is nothing to do. An Adjust
// begins with it. An error wraps [ratelimit.ErrInvalid].
func Adjustment(subject string, d *ratelimit.Decision, units int64) (int64, error) {
	switch {
	case d == nil:
		return 0, fmt.Errorf("%w: Adjust: no decision", ratelimit.ErrInvalid)
	case d.Outcome != ratelimit.Allowed:
		return 0, nil
	case units < 0 || d.Cost < 0:
		return 0, fmt.Errorf("%w: Adjust: the units must be 0 or more, got %d for a cost of %d", ratelimit.ErrInvalid, units, d.Cost)
	}
	if err := d.Plan.Check(subject, 1); err != nil || Of(d.Plan).Len() == 0 {
		return 0, err
	}
	return min(units, fixedwindow.MaxUnits) - min(d.Cost, fixedwindow.MaxUnits), nil
}
