package limit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// New returns a middleware that counts each request for the caller that identify
// returns. It answers
//
//   - 429 if a quota is exhausted or the caller is banned;
//   - 403 plan_suspended if the plan is a [ratelimit.SuspendedPlan];
//   - 400 cost_exceeds_limit if the request costs more than a whole quota;
//   - as Options.OnFailure says if the engine could not decide;
//   - 499 if the client cancelled the request before the engine decided, for logs and
//     metrics;
//   - 500 if the caller has no plan, no subject or one twice, or the cost is below 1;
//   - as [apierror.Responder.Respond] says if identify returned an error: a public
//     [apierror.Error] as it is, any other error with 500. Such a request is not counted
//     and not observed. In shadow mode it is served.
//
// The headers of Options.Headers are set before the request is served, so that
// every response from further in has them, errors and panics included, as long
// as no handler removes them.
//
// Place it after authentication and before everything else. To count requests
// without valid credentials too, refuse them further in. With package bearer that is
//
//	auth.Identify(limit(auth.Require(api)))
//
// where identify returns a network as the Caller if bearer.FromContext finds no
// principal.
//
// Two such middlewares, one inside the other, decide apart. The inner one replaces the
// headers that its own set has, and what it denies stays charged by the outer one, unless
// the Options.ChargeIf of that one is false for 429. With [ratelimit.Caller].Also, one middleware
// makes all charges or none.
//
// Place [http.TimeoutHandler] further in. Outside, its 503 has none of the headers, and
// the request stays charged, since this middleware sees only what its handler wrote.
//
// If pages of other origins call the service, place its CORS middleware outside: inside,
// preflights are counted, and a page cannot read a 429. Let Access-Control-Expose-Headers
// name Retry-After and the fields of Options.Headers, which a page cannot read otherwise.
func New(l ratelimit.Limiter, identify func(r *http.Request) (ratelimit.Caller, error), opts Options) (func(http.Handler) http.Handler, error) {
	switch {
	case nilvalue.In(l):
		return nil, errors.New("limit: New: the limiter must not be nil")
	case identify == nil:
		return nil, errors.New("limit: New: identify must not be nil")
	}
	if err := opts.validate(l); err != nil {
		return nil, err
	}
	adjuster, _ := l.(engine.Adjuster)
	return func(next http.Handler) http.Handler {
		return &limitHandler{
			Options: opts, limiter: l, adjuster: adjuster, identify: identify, next: next,
			disconnectWait: disconnectWait, watches: opts.Refund || opts.ChargeIf != nil || opts.Context,
		}
	}, nil
}

type limitHandler struct {
	Options
	limiter        ratelimit.Limiter
	adjuster       engine.Adjuster
	identify       func(*http.Request) (ratelimit.Caller, error)
	next           http.Handler
	watches        bool // an option needs more of a request than to serve it
	disconnectWait time.Duration
}

func (g *limitHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := g.identify(r)
	switch {
	case err != nil && !g.Shadow:
		g.Errors.Respond(w, r, fmt.Errorf("limit: identify: %w", err))
		return
	case err != nil:
		g.serve(w, r, c, ratelimit.Decision{}, nil, false)
		return
	}
	plan, cost := c.Plan, int64(1)
	if g.Cost != nil {
		cost = g.Cost(r)
	}
	if g.Shadow && plan != nil {
		plan = plan.WithoutPenalty()
	}
	var d ratelimit.Decision
	var all *charged // nil: the caller has one charge
	// Engines check as well, but an engine that does not must not admit an invalid call.
	switch err = check(plan, c.Subject, cost); {
	case err != nil:
		d = g.fallbackDecision(r, c.Subject, plan, cost, err)
	case len(c.Also) > 0:
		c, d, all, err = g.takeAll(r, c, plan, cost)
	case !metered(plan):
		d, err = engine.Decide(c.Subject, plan, cost) // the plan alone
	default:
		if d, err = g.limiter.Take(r.Context(), c.Subject, plan, cost); err != nil {
			d = g.fallbackDecision(r, c.Subject, plan, cost, err)
		}
	}
	if err == nil && !d.Allowed() && !answerable(&d) {
		err = fmt.Errorf("%w: %T returned a decision that cannot be answered: outcome %v", ratelimit.ErrUnavailable, g.limiter, d.Outcome)
		d, all = g.fallbackDecision(r, c.Subject, plan, cost, err), nil
	}
	d.Weighted = g.Cost != nil
	cancelled := err != nil && errors.Is(err, context.Canceled) && errors.Is(r.Context().Err(), context.Canceled)
	if g.Observe != nil && !cancelled {
		g.Observe(r, c, d, err)
	}
	admitted := err == nil && d.Allowed()
	pass := admitted || g.Shadow || err != nil && g.OnFailure == FailOpen && !errors.Is(err, ratelimit.ErrInvalid) && !cancelled
	if h := w.Header(); !g.Shadow || h[fieldLimit] == nil && h[fieldPolicy] == nil {
		g.Headers.Set(h, &d)
		if pass && !d.Allowed() {
			delete(h, fieldRetryAfter)
		}
	}
	switch {
	case !pass && err != nil:
		g.respondError(w, r, c.Subject, &d, err)
	case !pass && g.Deny != nil:
		g.Deny(w, r, c, d)
	case !pass:
		g.Errors.Respond(w, r, Denial(c, &d))
	case g.watches:
		g.serve(w, r, c, d, all, admitted && (all != nil || metered(plan)))
	default:
		g.next.ServeHTTP(w, r)
	}
}

// serve serves a request. It was counted if the engine has charged it for d, or for
// all, if that is not nil.
func (g *limitHandler) serve(w http.ResponseWriter, r *http.Request, c ratelimit.Caller, d ratelimit.Decision, all *charged, counted bool) {
	switch {
	case counted && (g.Refund || g.ChargeIf != nil):
		g.serveTracked(w, r, c, d, all)
	case g.Context:
		g.serveReserved(w, r, c, d, all, counted)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// respondError answers a request that the engine could not decide because of err.
func (g *limitHandler) respondError(w http.ResponseWriter, r *http.Request, subject string, d *ratelimit.Decision, err error) {
	switch {
	case errors.Is(err, ratelimit.ErrCostExceedsLimit):
		err = costExceedsLimit(d).Wrap(err)
	case errors.Is(err, ratelimit.ErrInvalid):
		err = fmt.Errorf("limit: identify or Options.Cost returned an invalid value for %q: %w", subject, err)
	default:
		err = unavailable.Wrap(err)
	}
	if errors.Is(err, ratelimit.ErrInvalid) {
		delete(w.Header(), fieldRetryAfter) // a retry would fail in the same way
	}
	g.Errors.Respond(w, r, err)
}

// fallbackDecision returns what the headers show if Take returned err. If only the
// cost is wrong and the engine can peek, they show what is left. Otherwise they show
// the quota with the shortest window: unused if the request is served, exhausted if it
// is refused. Without a valid plan there are no headers.
func (g *limitHandler) fallbackDecision(r *http.Request, subject string, plan *ratelimit.Plan, cost int64, err error) ratelimit.Decision {
	if !metered(plan) {
		return ratelimit.Decision{}
	}
	if peeker, ok := g.limiter.(engine.Peeker); ok && errors.Is(err, ratelimit.ErrCostExceedsLimit) {
		if d, err := peeker.Peek(r.Context(), subject, plan); err == nil {
			d.Cost = cost
			return d
		}
	}
	d := engine.Uncounted(plan, cost, time.Now())
	if g.Shadow || g.OnFailure == FailOpen && !errors.Is(err, ratelimit.ErrInvalid) {
		return d
	}
	d.Outcome, d.RetryAfter, d.StrikesLeft, d.Applicable = ratelimit.Limited, time.Second, -1, 0
	for i := range engine.Of(plan).Len() {
		d.States[i].Remaining = 0
	}
	return d
}
