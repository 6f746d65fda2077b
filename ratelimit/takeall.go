package ratelimit

import (
	"context"
	"errors"
	"fmt"

	"github.com/animalstore/gatehouse/internal/plan"
)

// A Charge is one of several that a request makes, such as to a user, to the user's
// organisation and to everybody. It has the arguments of [Limiter.Take].
type Charge struct {
	Subject string
	Plan    *Plan
	Cost    int64 // units, 1 to what every quota of the plan allows at once; 0 only in [Caller.Also]
}

// TakeAll makes all charges, or none if one of them is refused, and sets decisions[i] to the
// decision about charges[i]; Deciding of package engine finds the one to show. If all are made,
// every decision is [Allowed]. Otherwise the decisions of the refused ones are [Limited],
// [Banned] or [Suspended], and those may be strikes. The others are [Skipped]: they show what
// the subject has left, or are zero if the engine was not asked. Put subjects that many
// requests share last.
//
// The engines of packages memory and redislimit decide at one instant. The engines of
// redisrate and ululelimit make the charges in order, and say what follows from that. An engine
// without a TakeAll of its own can make one charge only: the error for more wraps
// [ErrInvalid] and [errors.ErrUnsupported].
//
// It returns the errors of [Limiter.Take], for all charges together. It is also an error that
// wraps [ErrInvalid] if a subject is named twice: usage belongs to a subject and a window,
// so that it would be counted twice. Give the subject one plan with more quotas, or name
// two subjects, such as "owner:17" and "owner:17:search".
func TakeAll(ctx context.Context, l Limiter, charges []Charge, decisions []Decision) error {
	if err := plan.CheckCharges(len(charges), len(decisions)); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	for i := range charges {
		if charges[i].Plan != nil && charges[i].Plan.alone() != 0 {
			return takeMetered(ctx, l, charges, decisions)
		}
	}
	return take(ctx, l, charges, decisions)
}

// A multiTaker is the MultiTaker of package engine.
type multiTaker interface {
	TakeAll(ctx context.Context, charges []Charge, decisions []Decision) error
}

// take is TakeAll for plans with quotas.
func take(ctx context.Context, l Limiter, charges []Charge, decisions []Decision) (err error) {
	if m, ok := l.(multiTaker); ok {
		return m.TakeAll(ctx, charges, decisions)
	}
	if len(charges) > 1 {
		return fmt.Errorf("%w: %T has no TakeAll, and can make one charge only: %w", ErrInvalid, l, errors.ErrUnsupported)
	}
	c := charges[0]
	decisions[0], err = l.Take(ctx, c.Subject, c.Plan, c.Cost)
	return err
}

// takeMetered is TakeAll if some plans have no quotas. The engine decides about the other
// charges, and only if no plan is suspended.
func takeMetered(ctx context.Context, l Limiter, charges []Charge, decisions []Decision) error {
	var metered []Charge
	var places []int // of the metered charges
	suspended := false
	for i, c := range charges {
		d, err := c.Plan.decide(c.Subject, c.Cost)
		if err != nil {
			clear(decisions)
			return fmt.Errorf("charge %d: %w", i+1, err)
		}
		if decisions[i] = d; d.Outcome == 0 {
			metered, places = append(metered, c), append(places, i)
		}
		suspended = suspended || d.Outcome == Suspended
	}
	if len(metered) > 0 && !suspended {
		taken := make([]Decision, len(metered))
		if err := take(ctx, l, metered, taken); err != nil {
			clear(decisions)
			return err
		}
		for i, place := range places {
			decisions[place] = taken[i]
			suspended = suspended || taken[i].Outcome == Limited || taken[i].Outcome == Banned
		}
	}
	for i := range decisions {
		if suspended && charges[i].Plan.alone() == Allowed {
			decisions[i].Outcome = Skipped
		}
	}
	return nil
}
