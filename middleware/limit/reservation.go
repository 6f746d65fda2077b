package limit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A Reservation is what a request was charged before it was served. A handler finds it
// in the context, if Options.Context is set, to log or meter the decision, and to settle
// a cost that is known only afterwards, such as tokens, bytes or rows:
//
//	tokens := answer(w, r)
//	err := limit.FromContext(r.Context()).Settle(r.Context(), tokens)
//
// It is safe for concurrent use. FromContext returns nil if the request did not pass the
// middleware. The methods then do nothing, and Settle returns an error.
type Reservation struct {
	limiter  ratelimit.Limiter
	caller   ratelimit.Caller
	deciding int // the number of the charge that Decision is about

	// hidden says that no handler has it, so that it is settled once, at the end of the request.
	hidden bool

	mu      sync.Mutex
	charges []reservedCharge  // the caller's own first
	one     [1]reservedCharge // where charges is, if there is one
	settled bool
}

// A reservedCharge is one charge of a request.
type reservedCharge struct {
	subject  string
	decision ratelimit.Decision
	counted  bool  // the engine has made it
	fixed    bool  // it has a cost of its own, which Settle does not change
	charged  int64 // what it costs now
	// id and units are those of an adjustment that may have been made: its answer was lost.
	id    string
	units int64
}

// FromContext returns the reservation of the request that ctx belongs to: that of the
// innermost middleware with Options.Context, or nil if there is none.
func FromContext(ctx context.Context) *Reservation {
	r, _ := ctx.Value(reservationKey{}).(*Reservation)
	return r
}

// Decision returns the decision that the response shows, as it was made: Settle does not change
// it. Of several charges its Plan says which one it is about. It is the
// zero Decision if none was made: if identify failed in shadow mode, or without the middleware. If
// the engine failed, it is what the header fields show.
func (r *Reservation) Decision() ratelimit.Decision {
	if r == nil {
		return ratelimit.Decision{}
	}
	return r.charges[r.deciding].decision
}

// Caller returns what identify returned, with Options.Name and a slash before each subject.
func (r *Reservation) Caller() ratelimit.Caller {
	if r == nil {
		return ratelimit.Caller{}
	}
	return r.caller
}

// Settle sets what the request costs in all to actual units, 0 or more: the difference to
// what it was charged so far is added to the usage, even beyond a limit, or given back, in
// the windows that the request was charged in, as far as they are still open ([engine.Adjuster]).
// If that exceeds a limit, later requests are denied; the settled one gets no strike.
//
// Under a smooth quota, charge a slow request a low estimate and settle at more: units that
// have come back by themselves meanwhile are not given back. A subject can owe such a quota
// no more than its Limit ([ratelimit.Quota.Smooth]), and units beyond that are dropped. Units that
// a call has added may come back only by themselves, also if a later call settles lower.
//
// Settle can be called at any time, also after the response, and again: the last call
// counts. A request that was settled is neither refunded nor given back by
// Options.ChargeIf. Settle does nothing if the request was not charged: it was denied in
// shadow mode, its caller is unlimited without [ratelimit.Caller.Also], or it was let pass
// because the engine failed.
//
// Settle takes half a second at most, and goes on if ctx ends, so that a client cannot
// avoid the charge by disconnecting. After an error that wraps [ratelimit.ErrUnavailable] the
// difference may have been counted or not; Settle can be called again, and within ten minutes
// counts it once.
// The error wraps [ratelimit.ErrInvalid] if actual is negative or the Reservation nil, and also
// [errors.ErrUnsupported] if the engine is not an [engine.Adjuster].
func (r *Reservation) Settle(ctx context.Context, actual int64) error {
	switch {
	case r == nil:
		return fmt.Errorf("%w: Settle: the context has no reservation; set Options.Context and use the context of the request", ratelimit.ErrInvalid)
	case actual < 0:
		return fmt.Errorf("%w: Settle: the units must be 0 or more, got %d", ratelimit.ErrInvalid, actual)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled = true
	return r.settleTo(ctx, actual, false)
}

// settleTo changes what the charges cost that cost as much as the request, or all. r.mu
// is locked: concurrent calls about one request wait for each other. All charges are
// changed that can be; the error is the first one.
func (r *Reservation) settleTo(ctx context.Context, units int64, all bool) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTimeout)
	defer cancel()
	for i := range r.charges {
		if c := &r.charges[i]; c.counted && (all || !c.fixed) {
			if failed := r.chargeTo(ctx, c, units); err == nil {
				err = failed
			}
		}
	}
	return err
}

// chargeTo makes a charge cost some units. If the answer to an adjustment before was lost,
// that is repeated first.
func (r *Reservation) chargeTo(ctx context.Context, c *reservedCharge, units int64) error {
	adjuster, ok := r.limiter.(engine.Adjuster)
	for c.id != "" || c.charged != units {
		if !ok {
			return fmt.Errorf("%w: Settle: %T is not an Adjuster: %w", ratelimit.ErrInvalid, r.limiter, errors.ErrUnsupported)
		}
		if c.id == "" {
			c.units = units
			if !r.hidden {
				c.id = rand.Text()
			}
		}
		d := c.decision
		d.Cost = c.charged
		if err := adjuster.Adjust(ctx, c.subject, &d, c.units, c.id); err != nil {
			if errors.Is(err, ratelimit.ErrInvalid) {
				c.id = "" // nothing was done
			}
			return settleError(ctx, err)
		}
		c.id, c.charged = "", c.units
	}
	return nil
}

// settleError wraps an error of the engine: also that of ctx, which only the timeout ends.
func settleError(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, ratelimit.ErrUnavailable) {
		return fmt.Errorf("limit: settle: %w: %w", ratelimit.ErrUnavailable, err)
	}
	return fmt.Errorf("limit: settle: %w", err)
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

// reserve returns the context of a request with its reservation. all is empty if the caller
// has one charge, which d is about.
func (g *limitHandler) reserve(ctx context.Context, c ratelimit.Caller, d ratelimit.Decision, all charged, counted bool) *reservedContext {
	reserved := &reservedContext{Context: ctx, reservation: Reservation{limiter: g.limiter, caller: c}}
	res := &reserved.reservation
	if all.charges == nil {
		res.one[0] = reservedCharge{subject: c.Subject, decision: d, counted: counted && metered(d.Plan), charged: d.Cost}
		res.charges = res.one[:]
		return reserved
	}
	res.charges, res.deciding = make([]reservedCharge, len(all.charges)), all.deciding
	for i, d := range all.decisions {
		res.charges[i] = reservedCharge{
			subject: all.charges[i].Subject, decision: d, charged: d.Cost,
			counted: counted && metered(d.Plan), fixed: i > 0 && c.Also[i-1].Cost != 0,
		}
	}
	return reserved
}
