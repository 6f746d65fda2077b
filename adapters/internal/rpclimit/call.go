package rpclimit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// refundTimeout bounds a refund, which is made before the end of the call.
const refundTimeout = 500 * time.Millisecond

// A Call is a call that was decided.
type Call struct {
	Denial  *Denial         // nil: the call is to be served
	Fields  http.Header     // for the client, with the names of package limit; may be nil
	Context context.Context // what the handler gets

	gate    *Gate
	request *http.Request
	charges []ratelimit.Charge   // those that were made
	made    []ratelimit.Decision // about charges; nil: nothing was charged
	broken  atomic.Bool          // a message of the stream could not be received or sent

	giveBackReserved func(context.Context) // nil without Options.Context
}

// Open decides a call, a request of [Request].
func (g *Gate) Open(r *http.Request) *Call {
	ctx := r.Context()
	call := &Call{gate: g, request: r, Context: ctx}
	c, err := g.identify(r)
	if err != nil {
		failed := errors.Is(err, ratelimit.ErrUnavailable) && !g.native(err) && ctx.Err() == nil
		if failed && g.Observe != nil {
			g.Observe(r, c, ratelimit.Decision{}, fmt.Errorf("%s: identify: %w", g.adapter, err))
		}
		if g.Shadow || failed && g.FailOpen {
			call.reserve(c, nil, nil, false)
		} else {
			call.Denial = g.notIdentified(r, err, failed)
		}
		return call
	}
	identified := c
	cost := int64(1)
	if g.Cost != nil {
		cost = g.Cost(r)
	}
	charges, decisions := g.charges(c, cost), make([]ratelimit.Decision, 1+len(c.Also))
	d, err := g.take(ctx, charges, decisions)
	d.Weighted = g.Cost != nil
	if err == nil {
		for i := range decisions {
			decisions[i].Weighted = d.Weighted
		}
		i := engine.Deciding(decisions)
		d = decisions[i]
		if i > 0 {
			c.Subject, c.Plan, c.Kind = c.Also[i-1].Subject, c.Also[i-1].Plan, 0
		}
	}
	ended := err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) // by the client
	if g.Observe != nil && !ended {
		g.Observe(r, c, d, err)
	}
	admitted := err == nil && d.Allowed()
	for i := range decisions {
		if admitted && counted(&decisions[i]) {
			call.charges, call.made = charges, decisions
		}
	}
	if !g.Shadow {
		call.Fields = make(http.Header, 4)
		g.Headers.Set(call.Fields, &d)
	}
	switch {
	case admitted || g.passes(err) && err == nil:
		call.reserve(identified, charges, decisions, admitted)
	case g.passes(err) && (g.Shadow || !ended):
		identified.Also = nil
		call.reserve(identified, charges[:1], []ratelimit.Decision{d}, false)
	case err != nil:
		call.Denial = g.undecided(r, charges, err)
	default:
		call.Denial = g.denied(r, c, &d)
	}
	return call
}

// counted reports whether the engine has counted the charge that d admits, which it does
// not under an unlimited plan.
func counted(d *ratelimit.Decision) bool { return d.Plan != nil && engine.Of(d.Plan).Len() > 0 }

// reserve adds the reservation to the context, if Options.Context is set.
func (c *Call) reserve(caller ratelimit.Caller, charges []ratelimit.Charge, decisions []ratelimit.Decision, counted bool) {
	if c.gate.Options.Context {
		c.Context, c.giveBackReserved = limit.Reserve(c.Context, c.gate.limiter, caller, charges, decisions, counted)
	}
}

// charges returns what a call is counted for, the caller's own charge first.
func (g *Gate) charges(c ratelimit.Caller, cost int64) []ratelimit.Charge {
	all := append([]ratelimit.Charge{{Subject: c.Subject, Plan: c.Plan, Cost: cost}}, c.Also...)
	for i := range all {
		if i > 0 && all[i].Cost == 0 {
			all[i].Cost = cost
		}
		if g.Shadow && all[i].Plan != nil {
			all[i].Plan = all[i].Plan.WithoutPenalty()
		}
	}
	return all
}

// take decides the charges. If there is an error, the decision is what the fields show.
func (g *Gate) take(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) (d ratelimit.Decision, err error) {
	if own := charges[0]; len(charges) > 1 {
		err = ratelimit.TakeAll(ctx, g.limiter, charges, decisions)
	} else if decisions[0], err = engine.Decide(own.Subject, own.Plan, own.Cost); err == nil && decisions[0].Outcome == 0 {
		decisions[0], err = g.limiter.Take(ctx, own.Subject, own.Plan, own.Cost)
	}
	if err == nil {
		err = g.wrong(decisions)
	}
	if err == nil || errors.Is(err, ratelimit.ErrInvalid) {
		return d, err
	}
	d = engine.Uncounted(charges[0].Plan, charges[0].Cost, time.Now())
	if !g.passes(err) && engine.Of(d.Plan).Len() > 0 {
		d.Outcome, d.RetryAfter, d.StrikesLeft, d.Applicable = ratelimit.Limited, retryUndecided, -1, 0
		for i := range engine.Of(d.Plan).Len() {
			d.States[i].Remaining = 0
		}
	}
	return d, err
}

// wrong returns an error if the decisions of an engine neither admit a call, which all
// must, nor refuse it in a way that a client can be told: an engine written elsewhere may
// return others.
func (g *Gate) wrong(decisions []ratelimit.Decision) error {
	d := &decisions[engine.Deciding(decisions)]
	if i := slices.IndexFunc(decisions, func(d ratelimit.Decision) bool { return !d.Allowed() }); d.Allowed() && i >= 0 {
		d = &decisions[i]
	}
	if d.Allowed() || answerable(d) {
		return nil
	}
	return fmt.Errorf("%s: %w: %T returned a decision that cannot be answered: outcome %v", g.adapter, ratelimit.ErrUnavailable, g.limiter, d.Outcome)
}

// passes reports whether a call is served although it was denied, or could not be
// decided because of err.
func (g *Gate) passes(err error) bool {
	return g.Shadow || err != nil && g.FailOpen && !errors.Is(err, ratelimit.ErrInvalid)
}

// notIdentified returns the answer to a call that identify returned an error for. failed
// says that identify could not ask its store.
func (g *Gate) notIdentified(r *http.Request, err error, failed bool) *Denial {
	if g.native(err) {
		return &Denial{Native: err}
	}
	err = fmt.Errorf("%s: identify: %w", g.adapter, err)
	if public, _ := errors.AsType[*apierror.Error](err); failed && public == nil {
		err = errUnavailable.Wrap(err)
	}
	return FromError(g.Errors.Public(r, err))
}

// Message notes that a message of the stream could not be received or sent, if err says
// so, and returns err. The call then stays charged: the client may have caused it, and may
// do so when it has all that it wants. io.EOF is the end of a stream.
func (c *Call) Message(err error) error {
	if err != nil && !errors.Is(err, io.EOF) {
		c.broken.Store(true)
	}
	return err
}

// Finish gives the charges back if Options.ChargeIf says so. ctx is that of the request,
// err what the handler returned, and code that of the answer; if the handler panicked,
// both are internal.
//
// A call whose context has ended stays charged, since its client has cancelled it or
// set the deadline. For the same reason DeadlineExceeded is given back only to calls
// without a deadline: one of a backend may come a moment before the call's own. What the
// handler does at the deadline may come a moment before the context ends.
func (c *Call) Finish(ctx context.Context, code Code, err error) {
	end, deadline := ctx.Deadline()
	switch {
	case c.made == nil || c.gate.adjuster == nil || c.broken.Load():
		return
	case ctx.Err() != nil || deadline && !time.Now().Before(end):
		return
	case code == DeadlineExceeded && deadline:
		return
	case c.gate.ChargeIf(c.request.WithContext(c.Context), err):
		return
	}
	c.giveBack(ctx)
}

// giveBack gives the charges back. If this fails, the call stays charged: its answer is
// decided.
func (c *Call) giveBack(ctx context.Context) {
	if c.giveBackReserved != nil {
		c.giveBackReserved(ctx)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTimeout)
	defer cancel()
	for i := range c.made {
		if counted(&c.made[i]) {
			_ = c.gate.adjuster.Adjust(ctx, c.charges[i].Subject, &c.made[i], 0, "")
		}
	}
}
