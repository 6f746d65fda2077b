package limit

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A Settlement is what a request was charged before it was served. A handler finds it
// in the context, if Options.Settle is set, to log or meter the decision, and to settle
// a cost that is known only afterwards, such as tokens, bytes or rows:
//
//	tokens := answer(w, r)
//	err := limit.FromContext(r.Context()).Settle(r.Context(), tokens)
//
// It is safe for concurrent use. FromContext returns nil if the request did not pass the
// middleware. The methods then do nothing, and Settle returns an error.
type Settlement struct {
	limiter  ratelimit.Limiter
	caller   ratelimit.Caller
	deciding int    // the number of the charge that Decision is about
	hold     string // the id under which the charges are held; empty: they are not

	// hidden says that no handler has it, so that it is settled once, at the end of the request.
	hidden bool

	mu      sync.Mutex
	charges []settledCharge  // the caller's own first
	one     [1]settledCharge // where charges is, if there is one
	settled bool
}

// A settledCharge is one charge of a request.
type settledCharge struct {
	subject  string
	decision ratelimit.Decision
	counted  bool  // the engine has made it
	fixed    bool  // it has a cost of its own, which Settle does not change
	charged  int64 // what it costs now
	held     bool  // by the engine, until its first adjustment
	// id and units belong to an adjustment whose answer was lost: it may have been made.
	id    string
	units int64
}

// FromContext returns the settlement of the request that ctx belongs to, from the innermost
// middleware with Options.Settle. It is nil if there is none.
func FromContext(ctx context.Context) *Settlement {
	r, _ := ctx.Value(settlementKey{}).(*Settlement)
	return r
}

// Decision returns the decision that the response shows, as it was made: Settle does not change
// it. Of several charges its Plan says which one it is about. It is the
// zero Decision if none was made: if identify failed in shadow mode, or without the middleware. If
// the engine failed, it is what the header fields show.
func (r *Settlement) Decision() ratelimit.Decision {
	if r == nil {
		return ratelimit.Decision{}
	}
	return r.charges[r.deciding].decision
}

// Caller returns what identify returned, with Options.Name and a slash before each subject.
func (r *Settlement) Caller() ratelimit.Caller {
	if r == nil {
		return ratelimit.Caller{}
	}
	return r.caller
}

// Settle sets what the request costs in all to actual units, 0 or more. The difference to what
// it was charged so far is added to the usage, even beyond a limit, or given back. It changes
// the windows that the request was charged in, as far as they are still open
// ([engine.Adjuster]). If that exceeds a limit, later requests are denied; the settled one
// gets no strike.
//
// Under a smooth quota, charge a slow request a low estimate and settle at more: units that
// have come back by themselves meanwhile are not given back. A subject can owe such a quota
// no more than its Limit ([ratelimit.Quota.Smooth]), and units beyond that are dropped. Units that
// a call has added may come back only by themselves, also if a later call settles lower.
//
// Settle can be called at any time, also after the response, and again: the last call counts,
// and what it sets also stays if the process dies (Options.Hold). A request on which Settle was
// called is not given back by Options.ChargeIf, also if that Settle failed. Settle does nothing
// if the request was not charged: it was denied in shadow mode, its caller is unlimited without
// [ratelimit.Caller.Also], or it was let pass because the engine failed.
//
// Settle waits for calls about the same request that began before it, and then takes half a
// second at most. It goes on if ctx ends, so that a client cannot avoid the charge by
// disconnecting. After an error that wraps [ratelimit.ErrUnavailable] the
// difference may have been counted or not; Settle can be called again, and within ten minutes
// counts it once.
// The error wraps [ratelimit.ErrInvalid] if actual is negative or the Settlement nil, and also
// [errors.ErrUnsupported] if the engine is not an [engine.Adjuster].
func (r *Settlement) Settle(ctx context.Context, actual int64) error {
	switch {
	case r == nil:
		return fmt.Errorf("%w: Settle: the context has no settlement; set Options.Settle and use the context of the request", ratelimit.ErrInvalid)
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
func (r *Settlement) settleTo(ctx context.Context, units int64, all bool) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTimeout)
	defer cancel()
	for i := range r.charges {
		if c := &r.charges[i]; c.counted && (all || !c.fixed) {
			err = cmp.Or(err, r.chargeTo(ctx, c, units))
		}
	}
	return err
}

// chargeTo makes a charge cost some units. If the answer to an adjustment before was lost,
// that is repeated first.
func (r *Settlement) chargeTo(ctx context.Context, c *settledCharge, units int64) error {
	adjuster, ok := r.limiter.(engine.Adjuster)
	for c.id != "" || c.held || c.charged != units {
		if !ok {
			return fmt.Errorf("%w: Settle: %T is not an Adjuster: %w", ratelimit.ErrInvalid, r.limiter, errors.ErrUnsupported)
		}
		if c.id == "" {
			c.units = units
			if c.held {
				c.id = r.hold
			} else if !r.hidden {
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
		c.id, c.held, c.charged = "", false, c.units
	}
	return nil
}

// release ends the holds that are left at the end of the request: at what the charge costs, or at
// what a Settle that failed was to make it.
func (r *Settlement) release(ctx context.Context) {
	if r.hold == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTimeout)
	defer cancel()
	for i := range r.charges {
		switch c := &r.charges[i]; {
		case c.held && c.id == "":
			_ = r.chargeTo(ctx, c, c.charged)
		case c.held: // the answer to Settle was lost
			_ = r.chargeTo(ctx, c, c.units)
		}
	}
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
func (r *Settlement) refund(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.settled {
		_ = r.settleTo(ctx, 0, true)
	}
}

type settlementKey struct{}

// A settlementContext is the context of a request with a settlement, in one allocation.
type settlementContext struct {
	context.Context
	settlement Settlement
}

func (c *settlementContext) Value(key any) any {
	if key == (settlementKey{}) {
		return &c.settlement
	}
	return c.Context.Value(key)
}

// settle returns the context of a request with its settlement. all is empty if the caller
// has one charge, which d is about.
func (g *limitHandler) settle(ctx context.Context, c ratelimit.Caller, d ratelimit.Decision, all charged, counted bool) *settlementContext {
	settling := &settlementContext{Context: ctx, settlement: Settlement{limiter: g.limiter, caller: c, hold: all.hold}}
	res := &settling.settlement
	if all.charges == nil {
		res.one[0] = settledCharge{subject: c.Subject, decision: d, counted: counted && metered(d.Plan), charged: d.Cost}
		res.one[0].held = res.one[0].counted && res.hold != ""
		res.charges = res.one[:]
		return settling
	}
	res.charges, res.deciding = make([]settledCharge, len(all.charges)), all.deciding
	for i, d := range all.decisions {
		res.charges[i] = settledCharge{
			subject: all.charges[i].Subject, decision: d, charged: d.Cost,
			counted: counted && metered(d.Plan), fixed: i > 0 && c.Also[i-1].Cost != 0,
		}
		res.charges[i].held = res.charges[i].counted && res.hold != ""
	}
	return settling
}
