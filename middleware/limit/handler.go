package limit

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/internal/response"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// New returns a middleware that counts each request for the caller that identify
// returns. Call it once, not for each request. If the middleware is on a router and again on
// a group of its routes, their requests are charged twice. It answers
//
//   - 429 if a quota is exhausted or the caller is banned;
//   - 403 plan_suspended if the plan is a [ratelimit.SuspendedPlan];
//   - 400 cost_exceeds_limit if the request costs more than a whole quota;
//   - 503 unavailable if the engine could not decide, unless Options.FailOpen is set;
//   - 499 if the client cancelled the request before the engine decided, for logs and
//     metrics; it may stay charged;
//   - 500 if the caller has no plan, no subject or one twice, or the cost is below 1;
//   - as [apierror.Responder.Respond] says if identify returned an error: a public
//     [apierror.Error] as it is, any other error with 500. An error that wraps
//     [ratelimit.ErrUnavailable] is treated as one of the engine, for a database of plans
//     that does not answer; other errors of identify are not observed. An Error without a
//     cause is not logged. The request is not counted. In shadow mode it is served.
//
// The headers of Options.Headers are set before the request is served. So every response from
// further in has them, errors and panics included, as long as no handler removes them.
//
// Place it after authentication and before everything else. To count requests
// without valid credentials too, refuse them further in. With package bearer that is
//
//	auth.Identify(limit(auth.Require(api)))
//
// where identify returns a network as the Caller if bearer.FromContext finds no
// principal. Set Options.ChargeIf to [NotServerError]: otherwise a client whose token cannot be
// verified at the moment, which gets 503, uses up the quota of its network, and can get it banned.
//
// Two such middlewares, one inside the other, decide apart. The inner one replaces the headers
// that its own set has. What it denies stays charged by the outer one, unless the
// Options.ChargeIf of that one is false for 429. With [ratelimit.Caller].Also, one middleware
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
	case nilvalue.InEngine(l):
		return nil, errors.New("limit: New: the limiter must not be nil or the zero memory.Limiter")
	case identify == nil:
		return nil, errors.New("limit: New: identify must not be nil")
	}
	if err := opts.validate(l); err != nil {
		return nil, err
	}
	if opts.Name != "" {
		identify = named(opts.Name, identify)
	}
	if made.Add(1) == manyLimits {
		slog.Warn("limit: this process has made many limits. Make an engine and its limit once, when the service starts, "+
			"and not for each request: a new engine knows no usage", "limits", manyLimits)
	}
	return func(next http.Handler) http.Handler {
		return &limitHandler{opts, l, identify, next}
	}, nil
}

// made is how many limits New has made.
var made atomic.Int64

// manyLimits is at how many the log says that a service makes one for each request.
const manyLimits = 1000

type limitHandler struct {
	Options
	limiter  ratelimit.Limiter
	identify func(*http.Request) (ratelimit.Caller, error)
	next     http.Handler
}

func (g *limitHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := g.identify(r)
	if err != nil {
		g.notIdentified(w, r, c, err)
		return
	}
	var d ratelimit.Decision
	var all charged
	err = g.decide(r, &c, &d, &all)
	cancelled := cancelledBy(r, err)
	if g.Observe != nil && !cancelled {
		g.Observe(r, c, d, err)
	}
	what := g.verdict(&d, err, cancelled)
	g.setHeaders(w.Header(), &d, all.decisions, what)
	switch what {
	case failed:
		g.respondError(w, r, c.Subject, &d, err)
	case denied:
		g.deny(w, r, c.Kind, all, &d)
	case admitted, letPass:
		if g.ChargeIf == nil && !g.Settle {
			g.next.ServeHTTP(w, r)
			return
		}
		charged := what == admitted && (all.charges != nil || metered(c.Plan)) // not under an unlimited plan
		g.serve(w, r, c, d, all, charged)
	}
}

// A verdict is what becomes of a request of a known caller.
type verdict uint8

const (
	admitted verdict = iota // by the engine, or by an unlimited plan: it is served
	letPass                 // it is served although it was denied or not decided
	denied                  // it is answered with the denial
	failed                  // it is answered with the error: nothing was decided
)

// verdict returns what becomes of a request, from the decision or from the error in its place.
func (g *limitHandler) verdict(d *ratelimit.Decision, err error, cancelled bool) verdict {
	switch {
	case err == nil && d.Allowed():
		return admitted
	case g.Shadow:
		return letPass
	case err == nil:
		return denied
	case g.FailOpen && !errors.Is(err, ratelimit.ErrInvalid) && !cancelled:
		return letPass
	}
	return failed
}

// setHeaders sets the header fields, which in shadow mode leave the fields of a middleware further
// out as they are. A request that is served although it was denied need not be retried.
func (g *limitHandler) setHeaders(h http.Header, d *ratelimit.Decision, all []ratelimit.Decision, what verdict) {
	if g.Shadow && (h[fieldLimit] != nil || h[fieldPolicy] != nil) {
		return
	}
	g.Headers.Set(h, d, all...)
	if what == letPass && !d.Allowed() {
		delete(h, fieldRetryAfter)
		delete(h, fieldBanned)
	}
}

// decide charges a request of c, or denies it. It sets d, also beside an error, to the decision
// that the response shows, and all, unless the caller has one charge. They are not results,
// since both are large, and would be copied for each request.
func (g *limitHandler) decide(r *http.Request, c *ratelimit.Caller, d *ratelimit.Decision, all *charged) (err error) {
	plan, cost, l, id := c.Plan, int64(1), g.limiter, ""
	if g.Hold > 0 {
		id = rand.Text()
		l = l.(engine.Holder).Hold(id, g.Hold)
	}
	if g.Cost != nil {
		cost = g.Cost(r)
	}
	if g.Shadow && plan != nil {
		plan = plan.WithoutPenalty()
	}
	// Engines check as well, but an engine that does not must not admit an invalid call.
	switch err = plan.Check(c.Subject, cost); {
	case err != nil:
		*d = g.fallbackDecision(r, c.Subject, plan, cost, err)
	case len(c.Also) > 0:
		*d, *all, err = g.takeAll(r, l, *c, plan, cost)
	case !metered(plan):
		*d, err = engine.Decide(c.Subject, plan, cost) // the plan alone
	default:
		if *d, err = l.Take(r.Context(), c.Subject, plan, cost); err != nil {
			*d = g.fallbackDecision(r, c.Subject, plan, cost, err)
		}
	}
	all.hold = id
	if err == nil && !d.Allowed() && !answerable(d) {
		err = fmt.Errorf("%w, which %T returned", errUnanswerable(d), g.limiter)
		*d, *all = g.fallbackDecision(r, c.Subject, plan, cost, err), charged{}
	}
	d.CountsUnits = g.Cost != nil
	return err
}

// cancelledBy reports whether err comes from the client of r, which has disconnected.
func cancelledBy(r *http.Request, err error) bool {
	return errors.Is(err, context.Canceled) && errors.Is(r.Context().Err(), context.Canceled)
}

// notIdentified serves or answers a request of an unknown caller. An identify function that
// could not ask its store is treated like an engine that could not decide.
func (g *limitHandler) notIdentified(w http.ResponseWriter, r *http.Request, c ratelimit.Caller, err error) {
	public, _ := errors.AsType[*apierror.Error](err)
	if err != error(public) { // one without a cause is not logged
		err = fmt.Errorf("limit: identify: %w", err)
	}
	failed := errors.Is(err, ratelimit.ErrUnavailable) && !errors.Is(err, ratelimit.ErrInvalid) && !cancelledBy(r, err)
	if failed && g.Observe != nil {
		g.Observe(r, c, ratelimit.Decision{}, err)
	}
	if g.Shadow || failed && g.FailOpen {
		g.serve(w, r, c, ratelimit.Decision{}, charged{}, false)
		return
	}
	if failed && public == nil {
		err = unavailable.Wrap(err)
	}
	g.Errors.Respond(w, r, err)
}

// serve serves a request. It was counted if the engine has charged it for d, or for
// all, if that is not empty.
func (g *limitHandler) serve(w http.ResponseWriter, r *http.Request, c ratelimit.Caller, d ratelimit.Decision, all charged, counted bool) {
	switch {
	case counted && g.ChargeIf != nil:
		g.serveTracked(w, r, c, d, all)
	case g.Settle:
		settling := g.settle(r.Context(), c, d, all, counted)
		defer settling.settlement.release(r.Context())
		response.ServeCopy(g.next, w, r, r.WithContext(settling))
	default:
		g.next.ServeHTTP(w, r)
	}
}

// deny answers a request of a caller of some kind that was denied. Responses share an error without
// RetryAfter, since they have the header field already. Only functions of the service read it.
func (g *limitHandler) deny(w http.ResponseWriter, r *http.Request, kind ratelimit.Kind, all charged, d *ratelimit.Decision) {
	if all.deciding > 0 {
		kind = 0 // a further charge has none
	}
	e := denial(kind, d)
	if g.Errors != nil && (g.Errors.Write != nil || g.Errors.Translate != nil) {
		e = withWait(e, d)
	}
	g.Errors.Respond(w, r, e)
}

// respondError answers a request that the engine could not decide because of err.
func (g *limitHandler) respondError(w http.ResponseWriter, r *http.Request, subject string, d *ratelimit.Decision, err error) {
	switch {
	case errors.Is(err, ratelimit.ErrCostExceedsLimit):
		err = costExceedsLimit(d).Wrap(err)
	case errors.Is(err, ratelimit.ErrInvalid):
		err = fmt.Errorf("limit: identify and the Options make an invalid call for %.200q: %w", subject, err)
	default:
		err = unavailable.Wrap(err)
	}
	if errors.Is(err, ratelimit.ErrInvalid) {
		delete(w.Header(), fieldRetryAfter) // a retry would fail in the same way
		delete(w.Header(), fieldBanned)     // and would without the ban
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
	if g.Shadow || g.FailOpen && !errors.Is(err, ratelimit.ErrInvalid) {
		return d
	}
	d.Outcome, d.RetryAfter, d.StrikesLeft, d.Applicable = ratelimit.Limited, time.Second, -1, 0
	for i := range engine.Of(plan).Len() {
		d.States[i].Remaining = 0
	}
	return d
}

// charged are the charges of a request that has several, the caller's own first.
type charged struct {
	charges   []ratelimit.Charge
	decisions []ratelimit.Decision
	deciding  int    // which one the response shows
	hold      string // the id of the request under which its charges are held; empty: they are not
}

// takeAll decides about a request with further charges. The decision it returns is the one
// that the response shows. If there is an error, there are no charges.
func (g *limitHandler) takeAll(r *http.Request, l ratelimit.Limiter, c ratelimit.Caller, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, charged, error) {
	n := 1 + len(c.Also)
	all := charged{charges: make([]ratelimit.Charge, n), decisions: make([]ratelimit.Decision, n)}
	all.charges[0] = ratelimit.Charge{Subject: c.Subject, Plan: plan, Cost: cost}
	for i, charge := range c.Also {
		charge.Cost = cmp.Or(charge.Cost, cost)
		if g.Shadow && charge.Plan != nil {
			charge.Plan = charge.Plan.WithoutPenalty()
		}
		all.charges[1+i] = charge
	}
	if err := ratelimit.TakeAll(r.Context(), l, all.charges, all.decisions); err != nil {
		show := slices.IndexFunc(all.charges, func(c ratelimit.Charge) bool {
			return errors.Is(c.Plan.Check(c.Subject, c.Cost), ratelimit.ErrCostExceedsLimit)
		})
		if show < 0 { // the engine has lower limits than the plans, or another error
			show = max(0, slices.IndexFunc(all.charges, func(c ratelimit.Charge) bool { return metered(c.Plan) }))
		}
		charge := all.charges[show]
		return g.fallbackDecision(r, charge.Subject, charge.Plan, charge.Cost, err), charged{}, err
	}
	all.deciding = engine.Deciding(all.decisions)
	for i := range all.decisions {
		d := &all.decisions[i]
		d.CountsUnits = g.Cost != nil
		if !d.Allowed() && all.decisions[all.deciding].Allowed() {
			all.deciding = i // the engine is wrong
		}
	}
	return all.decisions[all.deciding], all, nil
}

// metered reports whether an engine counts usage under a plan, which may be nil.
func metered(p *ratelimit.Plan) bool { return p != nil && engine.Of(p).Len() > 0 }
