package ratelimit

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/apierror"
)

// A Caller is the client that a request is counted for.
type Caller struct {
	// Subject is the name that usage is counted for; it must not be empty. Each kind
	// of caller needs a prefix of its own, such as "owner:" (apikey.OwnerSubject) and
	// "network:" (clientip.NetworkSubject), so that a name which a caller chose is
	// never the name of another.
	Subject string

	// Plan is what the subject may use; it must not be nil. [UnlimitedPlan] says that
	// there is no limit, and [SuspendedPlan] that nothing may be used.
	Plan *Plan

	// Kind says what the subject is, and decides only how a ban is answered.
	Kind Kind

	// Exempt says that the request is not limited: it is not counted and not
	// observed, its response has no X-RateLimit headers, and the other fields of the
	// Caller are ignored. Handlers further in may still refuse it.
	Exempt bool
}

// A Kind says what the subject of a [Caller] is. It decides the code and the text of the
// response during a ban.
type Kind uint8

const (
	KindClient  Kind = iota // any client: client_banned
	KindAPIKey              // the owner of an API key: api_key_banned
	KindNetwork             // the network of a client without an API key: client_banned, with a text that says so
)

// OnFailure says what happens to a request that the engine cannot decide. It
// does not apply to errors that wrap [ErrInvalid].
type OnFailure int

const (
	FailClosed OnFailure = iota // the request is answered with 503 and Retry-After
	FailOpen                    // the request is admitted
)

// Options are optional settings of the middleware. The zero value works.
type Options struct {
	// Cost returns how many units a request costs, at least 1. Nil means 1. Every
	// plan must allow the largest cost in each of its quotas: a request that costs
	// more is answered with 400. If the middleware is around an
	// [http.ServeMux], the mux has not matched the request when Cost is called:
	// r.Pattern and the path values are empty.
	Cost func(r *http.Request) int64

	// OnFailure is what to do when the engine cannot decide.
	OnFailure OnFailure

	// Headers are the header fields that tell clients what they have left. 0 means
	// [XRateLimit]. Retry-After is set on every denial, whatever Headers is.
	Headers HeaderSet

	// Refund gives back the units of a request that ended in a 5xx or in a panic.
	// The limiter must be a [Refunder]. A refund has half a second and a context of
	// its own, so that a deadline which ended the request does not stop it.
	//
	// Requests abandoned by the client are not refunded: their context is cancelled,
	// rather than ended by a deadline, when the handler returns. Over HTTP/1 net/http
	// cancels the context only after the body was read. After a 5xx the middleware
	// therefore reads the rest of the body, up to 256 KiB. It refunds if the body ends
	// and the context is not cancelled within 10 ms after that. It does not refund a
	// client that waits for 100 Continue and was not asked for its body. In two cases
	// it does not notice that the client has disconnected: behind a proxy that keeps
	// the connection, and over HTTP/1 if the client had already sent a part of its
	// next request.
	Refund bool

	// Shadow refuses nothing. Decisions are made, charged and observed, and every
	// request is served, also if the engine fails or the call is invalid. No request
	// is a strike, and no ban starts. The headers (except Retry-After) are set, unless
	// a middleware of this package further out has set some.
	//
	// To try a new plan beside the one in force, add a second middleware in shadow
	// mode. It needs an engine of its own, or subjects of its own such as
	// "trial:owner:17". Otherwise each request would be charged twice, since usage
	// belongs to a subject and not to a plan.
	Shadow bool

	// Observe is called with each decision before the request is served or denied,
	// but not for exempt requests. c is what identify returned. If the engine could
	// not decide, err says why, and d is what the response shows, which need not be a
	// refusal; d.Plan is nil if c.Plan is not valid. If the request costs more than a
	// quota of the plan, err wraps [ErrCostExceedsLimit], also in shadow mode. Observe
	// runs in the goroutine of the request, and must be safe for concurrent use.
	Observe func(r *http.Request, c Caller, d Decision, err error)

	// Deny writes the response to a request that is limited, banned or suspended: the
	// service's own body, status and language. The header fields are already set,
	// Retry-After included. What it would write by default is d.Error(c). Requests that
	// could not be decided are still answered by Errors. Nil means the default.
	Deny func(w http.ResponseWriter, r *http.Request, c Caller, d Decision)

	// Errors writes all responses to refused requests that Deny does not write. Nil
	// works.
	Errors *apierror.Responder
}

func (o *Options) validate(l Limiter) error {
	if _, ok := l.(Refunder); o.Refund && !ok {
		return fmt.Errorf("ratelimit: Options.Refund needs a limiter that is a Refunder, got %T", l)
	}
	if o.OnFailure != FailClosed && o.OnFailure != FailOpen {
		return fmt.Errorf("ratelimit: Options.OnFailure must be FailClosed or FailOpen, got %d", o.OnFailure)
	}
	if err := o.Headers.validate(); err != nil {
		return err
	}
	return nil
}

// New returns a middleware that counts each request for the caller that identify
// returns. It answers
//
//   - 429 if a quota is exhausted or the caller is banned;
//   - 403 plan_suspended if the plan is a [SuspendedPlan];
//   - 400 cost_exceeds_limit if the request costs more than a whole quota;
//   - as Options.OnFailure says if the engine could not decide;
//   - 500 if the caller has no plan or no subject, or the cost is below 1;
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
func New(l Limiter, identify func(r *http.Request) (Caller, error), opts Options) (func(http.Handler) http.Handler, error) {
	switch {
	case l == nil:
		return nil, errors.New("ratelimit: New: the limiter must not be nil")
	case identify == nil:
		return nil, errors.New("ratelimit: New: identify must not be nil")
	}
	if err := opts.validate(l); err != nil {
		return nil, err
	}
	refunder, _ := l.(Refunder)
	return func(next http.Handler) http.Handler {
		return &limitHandler{
			Options: opts, limiter: l, refunder: refunder, identify: identify, next: next,
			disconnectWait: disconnectWait,
		}
	}, nil
}

type limitHandler struct {
	Options
	limiter        Limiter
	refunder       Refunder
	identify       func(*http.Request) (Caller, error)
	next           http.Handler
	disconnectWait time.Duration
}

func (g *limitHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := g.identify(r)
	switch {
	case err != nil && !g.Shadow:
		g.Errors.Respond(w, r, fmt.Errorf("ratelimit: identify: %w", err))
		return
	case err != nil || c.Exempt:
		g.next.ServeHTTP(w, r)
		return
	}
	plan, cost := c.Plan, int64(1)
	if g.Cost != nil {
		cost = g.Cost(r)
	}
	if g.Shadow && plan != nil {
		plan = plan.WithoutPenalty()
	}
	var d Decision
	// Engines check as well, but an engine that does not must not admit an invalid
	// call.
	switch err = plan.Check(c.Subject, cost); {
	case err != nil:
	case plan.always != 0:
		d = plan.alone(cost)
	default:
		d, err = g.limiter.Take(r.Context(), c.Subject, plan, cost)
	}
	if err != nil {
		d = g.fallbackDecision(r, c.Subject, plan, cost, err)
	}
	d.Weighted = g.Cost != nil
	if g.Observe != nil {
		g.Observe(r, c, d, err)
	}
	admitted := err == nil && d.Allowed()
	pass := admitted || g.Shadow || err != nil && g.OnFailure == FailOpen && !errors.Is(err, ErrInvalid)
	if h := w.Header(); !g.Shadow || h[fieldLimit] == nil && h[fieldPolicy] == nil {
		g.Headers.Set(h, &d)
		if pass && !d.Allowed() {
			delete(h, fieldRetryAfter)
		}
	}
	switch {
	case !pass && err != nil:
		g.respondError(w, r, &d, err)
	case !pass && g.Deny != nil:
		g.Deny(w, r, c, d)
	case !pass:
		g.Errors.Respond(w, r, d.Error(c))
	case g.Refund && admitted && plan.always == 0:
		g.serveRefunding(w, r, c.Subject, d)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// respondError answers a request that the engine could not decide because of err.
func (g *limitHandler) respondError(w http.ResponseWriter, r *http.Request, d *Decision, err error) {
	switch {
	case errors.Is(err, ErrCostExceedsLimit):
		err = costExceedsLimit(d).Wrap(err)
	case errors.Is(err, ErrInvalid):
		err = fmt.Errorf("ratelimit: identify or Options.Cost returned an invalid value: %w", err)
	default:
		err = unavailable.Wrap(err)
	}
	if errors.Is(err, ErrInvalid) {
		delete(w.Header(), fieldRetryAfter) // a retry would fail in the same way
	}
	g.Errors.Respond(w, r, err)
}

// fallbackDecision returns what the headers show if Take returned err. If only the
// cost is wrong and the engine can peek, they show what is left. Otherwise they show
// the quota with the shortest window: unused if the request is served, exhausted if it
// is refused. Without a valid plan there are no headers.
func (g *limitHandler) fallbackDecision(r *http.Request, subject string, plan *Plan, cost int64, err error) Decision {
	if plan == nil || len(plan.quotas) == 0 {
		return Decision{}
	}
	if peeker, ok := g.limiter.(Peeker); ok && errors.Is(err, ErrCostExceedsLimit) {
		if d, err := peeker.Peek(r.Context(), subject, plan); err == nil {
			d.Cost = cost
			return d
		}
	}
	d := plan.Uncounted(cost, time.Now())
	if g.Shadow || g.OnFailure == FailOpen && !errors.Is(err, ErrInvalid) {
		return d
	}
	d.Outcome, d.RetryAfter, d.StrikesLeft, d.Applicable = Limited, time.Second, -1, 0
	for i := range plan.quotas {
		d.States[i].Remaining = 0
	}
	return d
}
