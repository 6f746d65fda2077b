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
// It is safe for concurrent use. FromContext returns nil if the request did not pass the
// middleware. The methods then do nothing, and Settle returns an error.
type Reservation struct {
	limiter  Limiter
	refunder Refunder // nil: the engine cannot refund
	caller   Caller
	deciding int // 0: own, otherwise the number of one of more

	mu      sync.Mutex
	own     reservedCharge
	more    []reservedCharge
	settled bool
}

// A reservedCharge is one charge of a request.
type reservedCharge struct {
	subject  string
	decision Decision
	counted  bool  // the engine has made it
	fixed    bool  // it has a cost of its own, which Settle does not change
	charged  int64 // decision.Cost and what was settled since
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
	if r.deciding > 0 {
		return r.more[r.deciding-1].decision
	}
	return r.own.decision
}

// Caller returns what identify returned; if Decision is about one of Also, it has the
// Subject and the Plan of that.
func (r *Reservation) Caller() Caller {
	if r == nil {
		return Caller{}
	}
	return r.caller
}

// Settle sets what the request costs in all to actual units, 0 or more: the difference to
// what it was charged so far is added to the usage, even beyond a limit, or given back. It
// counts in the windows in which the request was charged, as far as they are still open.
// If that exceeds a limit, later requests are denied; the settled one gets no strike.
//
// A subject can owe a smooth quota no more than its Limit ([Quota.Smooth]), and units beyond
// that are dropped. If a later call gives them back all the same, the subject gets back
// units of its other requests: do not settle at an estimate that is larger.
//
// Settle can be called at any time, also after the response, and again: the last call
// counts. A request that was settled is neither refunded nor given back by
// Options.ChargeIf. Settle does nothing if the request was not charged: it was denied in
// shadow mode, its caller is exempt, or unlimited without [Caller.Also], or it was let pass
// because the engine failed.
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
		return fmt.Errorf("%w: Settle: the context has no reservation; set Options.Context and use the context of the request", ErrInvalid)
	case actual < 0:
		return fmt.Errorf("%w: Settle: the units must be 0 or more, got %d", ErrInvalid, actual)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled = true
	return r.settleTo(ctx, min(actual, MaxLimit), false)
}

// settleTo changes what the charges cost that cost as much as the request, or all. r.mu
// is locked: concurrent calls about one request wait for each other. All charges are
// changed that can be; the error is the first one.
func (r *Reservation) settleTo(ctx context.Context, units int64, all bool) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTimeout)
	defer cancel()
	for i := -1; i < len(r.more); i++ {
		c := &r.own
		if i >= 0 {
			c = &r.more[i]
		}
		if c.counted && (all || !c.fixed) {
			if failed := r.chargeTo(ctx, c, units); err == nil {
				err = failed
			}
		}
	}
	return err
}

func (r *Reservation) chargeTo(ctx context.Context, c *reservedCharge, units int64) error {
	if units > c.charged {
		return r.add(ctx, c, units-c.charged)
	}
	for c.charged > units {
		if err := r.giveBack(ctx, c, c.charged-units); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil && c.charged > units {
			return fmt.Errorf("ratelimit: settle: %w: %d units are still charged: %w", ErrUnavailable, c.charged, err)
		}
	}
	return nil
}

func (r *Reservation) add(ctx context.Context, c *reservedCharge, units int64) error {
	adder, ok := r.limiter.(UsageAdder)
	if !ok {
		return fmt.Errorf("%w: Settle: %T is not a UsageAdder: %w", ErrInvalid, r.limiter, errors.ErrUnsupported)
	}
	d := &c.decision
	var all [MaxQuotas]int64
	for i := range d.Plan.Len() {
		all[i] = units
	}
	if err := adder.AddUsage(ctx, c.subject, d.Plan, all, time.Unix(0, d.Time)); err != nil {
		return settleError(ctx, err)
	}
	c.charged += units
	return nil
}

// giveBack gives back so many units, or as many as the engine takes in one call: no more
// than a request under the plan can cost. Units that Settle has added come first, in calls
// of their own: package failover may hold them apart from the charge.
func (r *Reservation) giveBack(ctx context.Context, c *reservedCharge, units int64) error {
	if r.refunder == nil {
		return fmt.Errorf("%w: Settle: %T is not a Refunder: %w", ErrInvalid, r.limiter, errors.ErrUnsupported)
	}
	part := c.decision
	part.Cost = min(units, c.most())
	if added := c.charged - c.decision.Cost; added > 0 {
		part.Cost = min(part.Cost, added)
		part.add(added)
	}
	if err := r.refunder.Refund(ctx, c.subject, &part); err != nil {
		return settleError(ctx, err)
	}
	c.charged -= part.Cost
	return nil
}

// uncounted reports whether a request was admitted without a charge: under a plan without
// quotas, or, as in mode FailOpen of package failover, with the whole limit left.
func (d *Decision) uncounted() bool {
	for i := range d.Plan.Len() {
		if d.States[i].Remaining < d.Plan.quotas[i].atOnce() {
			return false
		}
	}
	return true
}

// settleError wraps an error of the engine: also that of ctx, which only the timeout ends.
func settleError(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("ratelimit: settle: %w: %w", ErrUnavailable, err)
	}
	return fmt.Errorf("ratelimit: settle: %w", err)
}

// most returns the most that a request under the plan can cost.
func (c *reservedCharge) most() int64 {
	most := int64(MaxLimit)
	for _, q := range c.decision.Plan.quotas {
		most = min(most, q.atOnce())
	}
	return most
}

// refund gives the whole charge back at the end of the request, unless the handler has
// settled it meanwhile.
func (r *Reservation) refund(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.settled {
		_ = r.settleTo(ctx, 0, true)
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
func (g *limitHandler) serveReserved(w http.ResponseWriter, r *http.Request, c Caller, d Decision, all *charged, counted bool) {
	response.ServeCopy(g.next, w, r, r.WithContext(g.reserve(r.Context(), c, d, all, counted)))
}

func (g *limitHandler) reserve(ctx context.Context, c Caller, d Decision, all *charged, counted bool) *reservedContext {
	reserved := &reservedContext{Context: ctx, reservation: Reservation{limiter: g.limiter, refunder: g.refunder, caller: c}}
	res := &reserved.reservation
	if all == nil {
		res.own = reservedCharge{subject: c.Subject, decision: d, counted: counted && !d.uncounted(), charged: d.Cost}
		return reserved
	}
	res.own, res.more, res.deciding = all.reserved(0, counted), make([]reservedCharge, len(c.Also)), all.deciding
	for i := range res.more {
		res.more[i] = all.reserved(i+1, counted)
		res.more[i].fixed = c.Also[i].Cost != 0
	}
	return reserved
}
