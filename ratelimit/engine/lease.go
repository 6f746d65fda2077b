package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A Leaser charges shares: units in advance, for requests that a process then decides by
// itself until the first window ends. Engines may implement it.
type Leaser interface {
	// Lease decides about a request of cost units as Take does. If the request is admitted,
	// Lease also charges a share: up to terms.More units, but at most half of what every quota
	// has left after the request, rounded down. All of it, with what Terms describes, is one
	// atomic step. The Cost of the decision is what was charged in all, and its States are
	// those afterwards. A share must not be spent after the earliest Reset of the States, by
	// the clock of the engine, which was at Time. A holder with another clock must stop sooner.
	//
	// With the cost 0 there is no request, only a share. If that is refused, it is not a strike,
	// and the Cost is 0. Unless there is a ban, the Outcome is Limited if More is over 0
	// and no unit was charged. With More 0 nothing is charged, and Lease answers like Peek.
	//
	// After an error no unit may be spent, and the units of terms.Back may have been given back. As
	// for Take, what was charged in a call whose deadline has passed is given back.
	//
	// The Receipt has the generation of the subject's usage, also if nothing was charged. If it
	// is not the one of a share, the subject was Reset or lost since then, and the share must
	// not be spent.
	//
	// The units of a smooth quota would come at a wrong rate if they were spent later. With a
	// plan that has one, More over 0 is an error that wraps [ratelimit.ErrInvalid] and
	// [errors.ErrUnsupported].
	Lease(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64, terms Terms) (ratelimit.Decision, error)
}

// Terms are what a call of [Leaser] is about beside its request. The zero Terms charge no
// share.
type Terms struct {
	// More is the largest number of units of the share, 0 or more.
	More int64

	// Denied is how many requests the caller has refused since the last call, because of its
	// answer: 0 or more. If a quota refuses this request too (with the cost 0: one of one unit),
	// each of them is a strike before this one. The decision is then about the last of them all,
	// and is Struck if one of them was. Otherwise they are forgotten, as an admission clears
	// the strikes.
	Denied int

	// Back is an earlier answer of Lease for the subject, under any plan, with the Cost set to
	// the units of it that were not spent. They are given back to the windows that were
	// charged, before anything else is done. Nil, or not Allowed: none.
	//
	// Nothing is given back to a subject that was Reset, or that the engine has lost, since the
	// units were charged. What it has used by now does not include them. An engine may also
	// leave units charged because of what happened to other subjects. Give units back only
	// once: the engine does not notice a repetition.
	Back *ratelimit.Decision
}

// DecideLease is [Decide] for Lease: every [Leaser] begins with it. If the decision that it
// returns has no Outcome, the engine decides. First the engine adds back, which is 0 or less,
// to the charge of terms.Back, if the Receipt of that has the present generation of the subject.
func DecideLease(subject string, plan *ratelimit.Plan, cost int64, terms Terms) (d ratelimit.Decision, back int64, err error) {
	if d, err = Decide(subject, plan, cmp.Or(cost, 1)); err != nil {
		return d, 0, err
	}
	switch {
	case terms.More < 0 || terms.Denied < 0:
		err = fmt.Errorf("%w: Lease: Terms.More and Terms.Denied must be 0 or more, got %d and %d", ratelimit.ErrInvalid, terms.More, terms.Denied)
	case terms.More > 0 && Of(plan).Smooth():
		err = fmt.Errorf("%w: Lease: Terms.More must be 0 for a plan with a smooth quota, got %d: %w", ratelimit.ErrInvalid, terms.More, errors.ErrUnsupported)
	case terms.Back != nil:
		back, err = Adjustment(subject, terms.Back, 0)
		if _, known := terms.Back.Receipt.Generation(); !known {
			back = 0
		}
	}
	if err != nil {
		return ratelimit.Decision{}, 0, err
	}
	if d.Outcome != 0 {
		d.Cost = cost
	}
	return d, back, nil
}
