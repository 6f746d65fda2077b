package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/internal/response"
)

// A Reservation is what a request was charged before it was served. A handler finds it
// in the context, if Options.Context is set, to log or meter the decision, and to settle
// a cost that is known only afterwards, such as tokens, bytes or rows:
//
//	tokens := answer(w, r)
//	err := ratelimit.FromContext(r.Context()).Settle(r.Context(), tokens)
//
// It is safe for concurrent use. A nil Reservation is one of a request without the
// middleware.
type Reservation struct {
	limiter  Limiter
	refunder Refunder // nil: the engine cannot refund
	caller   Caller
	decision Decision
	counted  bool // the engine has charged the request

	mu      sync.Mutex
	charged int64 // of decision.Cost and what was settled since
	settled bool
}

// FromContext returns the reservation of the request that ctx belongs to: that of the
// innermost middleware with Options.Context, or nil if there is none.
func FromContext(ctx context.Context) *Reservation {
	r, _ := ctx.Value(reservationKey{}).(*Reservation)
	return r
}

// Decision returns the decision as it was made, which Settle does not change. It is the
// zero Decision if none was made: for an exempt caller, or without the middleware. If
// the engine failed, it is what the header fields show.
func (r *Reservation) Decision() Decision {
	if r == nil {
		return Decision{}
	}
	return r.decision
}

// Caller returns what identify returned.
func (r *Reservation) Caller() Caller {
	if r == nil {
		return Caller{}
	}
	return r.caller
}

// Settle makes the request cost so many units in all, 0 or more: the difference to what
// it was charged so far is added to the usage, even beyond a limit, or given back. It
// counts in the windows in which the request was charged, as far as they are still open.
// Requests that follow find the limit used up; the settled one gets no strike for it.
//
// Settle can be called at any time, also after the response, and again: the last call
// counts. A request that was settled is neither refunded nor given back by
// Options.ChargeIf. Settle does nothing if the request was not charged: it was denied in
// shadow mode, its caller is exempt or unlimited, or the engine failed and Options let it
// pass.
//
// Settle takes half a second at most, and goes on if ctx ends, so that a client cannot
// avoid the charge by disconnecting. After an error that wraps [ErrUnavailable] the
// difference may have been counted or not, and Settle can be called again. The error
// wraps [ErrInvalid] if actual is negative or the Reservation nil, and also
// [errors.ErrUnsupported] if the engine is not a [UsageAdder], to add, or a [Refunder],
// to give back.
func (r *Reservation) Settle(ctx context.Context, actual int64) error {
	switch {
	case r == nil:
		return fmt.Errorf("%w: Settle: the request has no reservation; set ratelimit.Options.Context", ErrInvalid)
	case actual < 0:
		return fmt.Errorf("%w: Settle: the units must be 0 or more, got %d", ErrInvalid, actual)
	case !r.counted:
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled = true
	return r.chargeTo(ctx, min(actual, MaxLimit))
}

// chargeTo changes what the request is charged. r.mu is locked: concurrent calls about
// one request wait for each other.
func (r *Reservation) chargeTo(ctx context.Context, units int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTimeout)
	defer cancel()
	if units > r.charged {
		return r.add(ctx, units-r.charged)
	}
	for r.charged > units {
		if err := r.giveBack(ctx, r.charged-units); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil && r.charged > units {
			return fmt.Errorf("ratelimit: settle: %w: %d units are still charged: %w", ErrUnavailable, r.charged, err)
		}
	}
	return nil
}

func (r *Reservation) add(ctx context.Context, units int64) error {
	adder, ok := r.limiter.(UsageAdder)
	if !ok {
		return fmt.Errorf("%w: Settle: %T is not a UsageAdder: %w", ErrInvalid, r.limiter, errors.ErrUnsupported)
	}
	d := &r.decision
	var all [MaxQuotas]int64
	for i := range d.Plan.Len() {
		all[i] = units
	}
	if err := adder.AddUsage(ctx, r.caller.Subject, d.Plan, all, time.Unix(0, d.Time)); err != nil {
		return fmt.Errorf("ratelimit: settle: %w", err)
	}
	r.charged += units
	return nil
}

// giveBack gives back so many units, or as many as the engine takes in one call: no more
// than a request under the plan can cost.
func (r *Reservation) giveBack(ctx context.Context, units int64) error {
	if r.refunder == nil {
		return fmt.Errorf("%w: Settle: %T is not a Refunder: %w", ErrInvalid, r.limiter, errors.ErrUnsupported)
	}
	part := r.decision
	part.Cost = min(units, r.most())
	if err := r.refunder.Refund(ctx, r.caller.Subject, &part); err != nil {
		return fmt.Errorf("ratelimit: settle: %w", err)
	}
	r.charged -= part.Cost
	return nil
}

// most returns the smallest limit of the plan.
func (r *Reservation) most() int64 {
	most := int64(MaxLimit)
	for _, q := range r.decision.Plan.quotas {
		most = min(most, q.Limit)
	}
	return most
}

// refund gives the whole charge back at the end of the request, unless the handler has
// settled it meanwhile.
func (r *Reservation) refund(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.settled {
		_ = r.chargeTo(ctx, 0)
	}
}

type reservationKey struct{}

// A reservedContext is the context of a request with a reservation, in one allocation.
type reservedContext struct {
	context.Context
	reservation Reservation
}

func (c *reservedContext) Value(key any) any {
	if key == (reservationKey{}) {
		return &c.reservation
	}
	return c.Context.Value(key)
}

// serveReserved serves a request without a charge that may be given back at its end.
func (g *limitHandler) serveReserved(w http.ResponseWriter, r *http.Request, c Caller, d Decision, counted bool) {
	response.ServeCopy(g.next, w, r, r.WithContext(g.reserve(r.Context(), c, d, counted)))
}

func (g *limitHandler) reserve(ctx context.Context, c Caller, d Decision, counted bool) *reservedContext {
	reserved := &reservedContext{Context: ctx, reservation: Reservation{
		limiter: g.limiter, refunder: g.refunder, caller: c, decision: d, counted: counted,
	}}
	if counted {
		reserved.reservation.charged = d.Cost
	}
	return reserved
}
