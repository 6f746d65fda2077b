package ratelimit

import (
	"context"
	"fmt"
)

// A Charge is one of several that a request is counted for, such as those of a user,
// of the user's organisation and of everybody. It has the arguments of [Limiter.Take].
type Charge struct {
	Subject string
	Plan    *Plan
	Cost    int64 // units, 1 to the smallest limit of the plan; in [Caller.Also] also 0
}

// A MultiTaker decides about several charges at one instant. Engines may implement
// it. Call [TakeAll], which works with other engines too.
type MultiTaker interface {
	// TakeAll makes all charges, or none if one of them is refused, and sets
	// decisions[i] to the decision about charges[i]. If all are made, every decision
	// is [Allowed]. Otherwise the decisions of the refused ones are [Limited] or
	// [Banned], and those may be strikes; the others are [Spared]: they show what
	// the subject has left, nothing was charged, and nothing else was changed. All
	// decisions have the same Time.
	//
	// Errors are those of Take, for all charges together, and leave the decisions
	// undefined. It is also an error that wraps [ErrInvalid] if a subject is named
	// twice: usage belongs to a subject and a window, so that it would be counted
	// twice. Give the subject one plan with more quotas, or name two subjects, such as
	// "owner:17" and "owner:17:search".
	TakeAll(ctx context.Context, charges []Charge, decisions []Decision) error
}

// CheckAll reports whether the charges can be decided together, and whether there is
// room for as many decisions. Engines that are a [MultiTaker] call it first. Errors
// wrap [ErrInvalid], and [ErrCostExceedsLimit] if a cost is over a limit.
func CheckAll(charges []Charge, decisions []Decision) error {
	switch {
	case len(charges) < 1 || len(charges) > MaxCharges:
		return fmt.Errorf("%w: %s given; there must be 1 to %d", ErrInvalid, counted(int64(len(charges)), "charge"), MaxCharges)
	case len(charges) != len(decisions):
		return fmt.Errorf("%w: %s and room for %s; the numbers must be equal", ErrInvalid,
			counted(int64(len(charges)), "charge"), counted(int64(len(decisions)), "decision"))
	}
	for i := range charges {
		c := &charges[i]
		if err := c.Plan.Check(c.Subject, c.Cost); err != nil {
			return fmt.Errorf("charge %d: %w", i+1, err)
		}
		if c.unmetered() {
			return fmt.Errorf("%w: the plan of charge %d has no quotas; call ratelimit.TakeAll, which decides it", ErrInvalid, i+1)
		}
		for k := range i {
			if charges[k].Subject == c.Subject {
				return fmt.Errorf("%w: charges %d and %d have the same subject, which would be counted twice", ErrInvalid, k+1, i+1)
			}
		}
	}
	return nil
}

// Deciding returns the index of the decision that matters most, which the header
// fields and the answer to a denied request show. If any is a denial, it is the
// denial with the longest RetryAfter, or one that is [Suspended], which has no end. If
// all are allowed, it is the one with the least remaining and, on a tie, the later reset,
// and an unlimited one only if all are unlimited. Of equal ones it is the first. Deciding
// returns -1 if there are no decisions.
func Deciding(decisions []Decision) int {
	most := -1
	for i := range decisions {
		if most < 0 || mattersMore(&decisions[i], &decisions[most]) {
			most = i
		}
	}
	return most
}

func mattersMore(a, b *Decision) bool {
	switch {
	case a.Outcome.denied() != b.Outcome.denied():
		return a.Outcome.denied()
	case (a.Outcome == Suspended) != (b.Outcome == Suspended):
		return a.Outcome == Suspended
	case a.Outcome.denied():
		return a.RetryAfter > b.RetryAfter
	case a.Plan == nil || b.Plan == nil: // no engine has decided
		return a.Plan != nil && b.Plan == nil
	case a.Plan.Len() == 0 || b.Plan.Len() == 0: // an unlimited plan has nothing to show
		return a.Plan.Len() > 0 && b.Plan.Len() == 0
	case a.Remaining() != b.Remaining():
		return a.Remaining() < b.Remaining()
	}
	return a.Reset() > b.Reset()
}

// denied reports whether the request was refused because of this subject.
func (o Outcome) denied() bool { return o == Limited || o == Banned || o == Suspended }
