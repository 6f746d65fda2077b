package limit

import (
	"errors"
	"net/http"

	"github.com/animalstore/gatehouse/internal/plan"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// charged are the charges of a request that has several, the caller's own first.
type charged struct {
	charges   []ratelimit.Charge
	decisions []ratelimit.Decision
	deciding  int // which one the response shows
}

// newCharged returns room for n charges, in one allocation if they are few.
func newCharged(n int) *charged {
	const few = 3
	if n > few {
		return &charged{charges: make([]ratelimit.Charge, n), decisions: make([]ratelimit.Decision, n)}
	}
	room := new(struct {
		charged
		charges   [few]ratelimit.Charge
		decisions [few]ratelimit.Decision
	})
	room.charged.charges, room.charged.decisions = room.charges[:n], room.decisions[:n]
	return &room.charged
}

// takeAll decides about a request with further charges. The caller and the decision it
// returns are those that the response shows. If there is an error, there are no charges.
func (g *limitHandler) takeAll(r *http.Request, c ratelimit.Caller, plan *ratelimit.Plan, cost int64) (ratelimit.Caller, ratelimit.Decision, *charged, error) {
	all := newCharged(1 + len(c.Also))
	all.charges[0] = ratelimit.Charge{Subject: c.Subject, Plan: plan, Cost: cost}
	for i, charge := range c.Also {
		if charge.Cost == 0 {
			charge.Cost = cost
		}
		if g.Shadow && charge.Plan != nil {
			charge.Plan = charge.Plan.WithoutPenalty()
		}
		all.charges[1+i] = charge
	}
	err := ratelimit.TakeAll(r.Context(), g.limiter, all.charges, all.decisions)
	if err != nil {
		i := all.tooExpensive(err)
		charge := all.charges[i]
		return showing(c, i), g.fallbackDecision(r, charge.Subject, charge.Plan, charge.Cost, err), nil, err
	}
	all.deciding = engine.Deciding(all.decisions)
	for i := range all.decisions {
		d := &all.decisions[i]
		d.Weighted = g.Cost != nil
		if !d.Allowed() && all.decisions[all.deciding].Allowed() {
			all.deciding = i // the engine is wrong
		}
	}
	return showing(c, all.deciding), all.decisions[all.deciding], all, nil
}

// tooExpensive returns which charge costs more than a quota allows, if that is the
// error, and otherwise the caller's own.
func (all *charged) tooExpensive(err error) int {
	if errors.Is(err, ratelimit.ErrCostExceedsLimit) {
		for i, c := range all.charges {
			if errors.Is(check(c.Plan, c.Subject, c.Cost), ratelimit.ErrCostExceedsLimit) {
				return i
			}
		}
	}
	return 0
}

// showing returns the caller with the subject and the plan of the i-th charge.
func showing(c ratelimit.Caller, i int) ratelimit.Caller {
	if i > 0 {
		c.Subject, c.Plan, c.Kind = c.Also[i-1].Subject, c.Also[i-1].Plan, 0
	}
	return c
}

// reserved returns the i-th charge for a reservation.
func (all *charged) reserved(i int, counted bool) reservedCharge {
	c, d := all.charges[i], all.decisions[i]
	return reservedCharge{subject: c.Subject, decision: d, counted: counted && metered(d.Plan), charged: d.Cost}
}

// check reports whether a request can be decided.
func check(p *ratelimit.Plan, subject string, cost int64) error {
	return (*plan.Plan)(p).Check(subject, cost)
}

// metered reports whether an engine counts usage under a plan, which may be nil.
func metered(p *ratelimit.Plan) bool { return p != nil && engine.Of(p).Len() > 0 }
