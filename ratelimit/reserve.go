package ratelimit

import "context"

// Reserve returns a context in which [FromContext] finds a reservation, for packages that
// call [TakeAll] in place of the middleware, such as package gatehousegrpc. charges are
// those of c, its own first, and decisions what TakeAll decided about them. counted says
// whether an engine made the charges, which it did if it returned only Allowed decisions.
// If it is false, [Reservation.Settle] does nothing.
//
// decisions is empty if none was made, as if identify failed in shadow mode.
func Reserve(ctx context.Context, l Limiter, c Caller, charges []Charge, decisions []Decision, counted bool) context.Context {
	g := &limitHandler{limiter: l}
	if len(decisions) == 0 {
		return g.reserve(ctx, c, Decision{}, nil, false)
	}
	all := &charged{charges: charges, decisions: decisions, deciding: Deciding(decisions)}
	return g.reserve(ctx, c.showing(all.deciding), Decision{}, all, counted)
}

// GiveBack gives the whole charge back at the end of a request that failed, unless the
// request was settled. It takes half a second at most, and goes on if ctx ends.
func (r *Reservation) GiveBack(ctx context.Context) {
	if r != nil {
		r.refund(ctx)
	}
}
