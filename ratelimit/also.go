package ratelimit

import (
	"errors"
	"net/http"
)

// charged are the charges of a request that has several, the caller's own first.
type charged struct {
	charges   []Charge
	decisions []Decision
	deciding  int // which one the response shows
}

// newCharged returns room for n charges, in one allocation if they are few.
func newCharged(n int) *charged {
	const few = 3
	if n > few {
		return &charged{charges: make([]Charge, n), decisions: make([]Decision, n)}
	}
	room := new(struct {
		charged
		charges   [few]Charge
		decisions [few]Decision
	})
	room.charged.charges, room.charged.decisions = room.charges[:n], room.decisions[:n]
	return &room.charged
}

// takeAll decides about a request with further charges. The caller and the decision it
// returns are those that the response shows. If there is an error, there are no charges.
func (g *limitHandler) takeAll(r *http.Request, c Caller, plan *Plan, cost int64) (Caller, Decision, *charged, error) {
	all := newCharged(1 + len(c.Also))
	all.charges[0] = Charge{c.Subject, plan, cost}
	for i, charge := range c.Also {
		if charge.Cost == 0 {
			charge.Cost = cost
		}
		if g.Shadow && charge.Plan != nil {
			charge.Plan = charge.Plan.WithoutPenalty()
		}
		all.charges[1+i] = charge
	}
	err := TakeAll(r.Context(), g.limiter, all.charges, all.decisions)
	if err != nil {
		i := all.tooExpensive(err)
		charge := all.charges[i]
		return c.showing(i), g.fallbackDecision(r, charge.Subject, charge.Plan, charge.Cost, err), nil, err
	}
	all.deciding = Deciding(all.decisions)
	for i := range all.decisions {
		d := &all.decisions[i]
		d.Weighted = g.Cost != nil
		if !d.Allowed() && all.decisions[all.deciding].Allowed() {
			all.deciding = i // the engine is wrong
		}
	}
	return c.showing(all.deciding), all.decisions[all.deciding], all, nil
}

// tooExpensive returns which charge costs more than a quota allows, if that is the
// error, and otherwise the caller's own.
func (all *charged) tooExpensive(err error) int {
	if errors.Is(err, ErrCostExceedsLimit) {
		for i, c := range all.charges {
			if errors.Is(c.Plan.Check(c.Subject, c.Cost), ErrCostExceedsLimit) {
				return i
			}
		}
	}
	return 0
}

// showing returns the caller with the subject and the plan of the i-th charge.
func (c Caller) showing(i int) Caller {
	if i > 0 {
		c.Subject, c.Plan, c.Kind = c.Also[i-1].Subject, c.Also[i-1].Plan, KindClient
	}
	return c
}

// reserved returns the i-th charge for a reservation.
func (all *charged) reserved(i int, counted bool) reservedCharge {
	c, d := all.charges[i], all.decisions[i]
	return reservedCharge{subject: c.Subject, decision: d, counted: counted && !d.uncounted(), charged: d.Cost}
}
