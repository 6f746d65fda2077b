package ratelimit

import (
	"context"
	"fmt"
)

// unmetered reports whether the plan of a charge decides alone.
func (c Charge) unmetered() bool { return c.Plan != nil && c.Plan.always != 0 }

// takeMetered does what TakeAll does if some plans have no quotas. The engine decides
// about the other charges, and only if no plan is suspended.
func takeMetered(ctx context.Context, l Limiter, charges []Charge, decisions []Decision) error {
	if len(charges) > MaxCharges || len(charges) != len(decisions) {
		return CheckAll(charges, decisions)
	}
	var metered []Charge
	var places []int // of the metered charges
	suspended := false
	for i, c := range charges {
		if err := c.Plan.Check(c.Subject, c.Cost); err != nil {
			return fmt.Errorf("charge %d: %w", i+1, err)
		}
		if !c.unmetered() {
			metered, places = append(metered, c), append(places, i)
			continue
		}
		decisions[i] = c.Plan.alone(c.Cost)
		suspended = suspended || c.Plan.always == Suspended
	}
	taken := make([]Decision, len(metered))
	if err := takeOrLook(ctx, l, metered, taken, suspended); err != nil {
		clear(decisions)
		return err
	}
	for i, place := range places {
		decisions[place] = taken[i]
		suspended = suspended || taken[i].Outcome.denied()
	}
	for i := range decisions {
		if suspended && charges[i].unmetered() && decisions[i].Outcome == Allowed {
			decisions[i].Outcome = Spared
		}
	}
	return nil
}

// takeOrLook makes the charges, or only looks up what their subjects have left.
func takeOrLook(ctx context.Context, l Limiter, charges []Charge, decisions []Decision, look bool) error {
	if len(charges) == 0 {
		return nil
	}
	if !look {
		return TakeAll(ctx, l, charges, decisions)
	}
	if err := CheckAll(charges, decisions); err != nil {
		return err
	}
	if peeker, ok := l.(Peeker); ok {
		t := inOrder{ctx: ctx, limiter: l, peeker: peeker, charges: charges, decisions: decisions}
		_, _ = t.peekFrom(0) // the request is denied in any case
	}
	return nil
}
