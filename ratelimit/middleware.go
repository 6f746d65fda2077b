package ratelimit

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/response"
)

// A Caller is whom a request is counted for.
type Caller struct {
	// Subject names whose usage this is. Two kinds of callers need two kinds of
	// names, such as "owner:17" and "network:192.0.2.1": what a caller chooses
	// itself must never be able to name another.
	Subject string

	// Plan is what the subject may use. Without a plan the request is not
	// counted, and its response has no fields.
	Plan *Plan

	// Network says that the subject is a network and not a key's owner. Its ban
	// is answered with client_banned in place of api_key_banned.
	Network bool
}

// OnFailure says what becomes of a request that the engine cannot decide.
type OnFailure int

const (
	Closed OnFailure = iota // it is answered with 503 and Retry-After
	Open                    // it is admitted
)

// Options of the middleware. The zero value works.
type Options struct {
	// Cost returns how many units a request costs, at least 1. Nil means 1.
	Cost func(r *http.Request) int64

	// OnFailure is what to do when the engine cannot decide.
	OnFailure OnFailure

	// DraftFields adds RateLimit and RateLimit-Policy; see
	// [Decision.SetDraftFields].
	DraftFields bool

	// Refund gives a request back that ended in a 5xx or in a panic, unless the
	// client went away before: to hang up must not be a way to pay nothing. The
	// limiter must be a [Refunder].
	Refund bool

	// Shadow denies nobody. Decisions are made, charged, put into the fields
	// and observed as ever, but for Retry-After, and every request goes on.
	Shadow bool

	// Observe is called with each decision before the request goes on or is
	// denied, or with the error if the engine could not decide; d is then what
	// the response says.
	Observe func(r *http.Request, c Caller, d Decision, err error)

	// Errors writes denials. Nil works.
	Errors *apierror.Responder
}

func (o *Options) validate(l Limiter) error {
	if _, ok := l.(Refunder); o.Refund && !ok {
		return fmt.Errorf("ratelimit: Options.Refund: %T cannot refund", l)
	}
	if o.OnFailure != Closed && o.OnFailure != Open {
		return fmt.Errorf("ratelimit: Options.OnFailure: %d is neither Closed nor Open", o.OnFailure)
	}
	return nil
}

// New returns a middleware that counts each request for the caller that
// identify names, and answers those over their quotas with 429.
//
// The fields of [Decision.SetFields] are set before the request goes on, so that
// every response from further in has them, errors and panics included, as long
// as no handler removes them. Put it inside of what finds out who is calling, and
// outside of everything else.
func New(l Limiter, identify func(r *http.Request) Caller, opts Options) (func(http.Handler) http.Handler, error) {
	switch {
	case l == nil:
		return nil, errors.New("ratelimit: New: no limiter")
	case identify == nil:
		return nil, errors.New("ratelimit: New: no identify")
	}
	if err := opts.validate(l); err != nil {
		return nil, err
	}
	refunder, _ := l.(Refunder)
	return func(next http.Handler) http.Handler {
		return &gate{Options: opts, limiter: l, refunder: refunder, identify: identify, next: next}
	}, nil
}

type gate struct {
	Options
	limiter  Limiter
	refunder Refunder
	identify func(*http.Request) Caller
	next     http.Handler
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := g.identify(r)
	if c.Plan == nil {
		g.next.ServeHTTP(w, r)
		return
	}
	cost := int64(1)
	if g.Cost != nil {
		cost = g.Cost(r)
	}
	d, err := g.limiter.Take(r.Context(), c.Subject, c.Plan, cost)
	if err != nil {
		d = undecided(c.Plan, cost, g.OnFailure, time.Now())
	}
	if g.Observe != nil {
		g.Observe(r, c, d, err)
	}
	pass := d.Allowed() || g.Shadow && err == nil
	d.SetFields(w.Header())
	if pass && !d.Allowed() {
		delete(w.Header(), fieldRetryAfter)
	}
	if g.DraftFields {
		d.SetDraftFields(w.Header())
	}
	switch {
	case !pass && errors.Is(err, ErrInvalid): // the service's own mistake: to wait does not mend it
		delete(w.Header(), fieldRetryAfter)
		g.Errors.Respond(w, r, err)
	case !pass && err != nil:
		g.Errors.Respond(w, r, unavailable.Wrap(err))
	case !pass:
		g.Errors.Respond(w, r, denial(c, &d))
	case g.Refund && d.Allowed() && err == nil:
		g.serveRefunding(w, r, c.Subject, d)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// serveRefunding serves the request and gives it back if it ends in a 5xx.
func (g *gate) serveRefunding(w http.ResponseWriter, r *http.Request, subject string, d Decision) {
	t := response.Track(w)
	returned := false
	defer func() {
		if returned && t.Status() < 500 || r.Context().Err() != nil {
			return
		}
		// What cannot be refunded stays charged; the response is on its way.
		_ = g.refunder.Refund(r.Context(), subject, &d)
	}()
	g.next.ServeHTTP(t, r)
	returned = true
}

// undecided is what the fields say when the engine cannot tell: the quota with
// the shortest window, used up if the request is refused, and untouched if not.
func undecided(plan *Plan, cost int64, mode OnFailure, now time.Time) Decision {
	d := Decision{Outcome: Limited, Plan: plan, Cost: cost, Time: now.UnixNano(), StrikesLeft: -1, RetryAfter: time.Second}
	if mode == Open {
		d.Outcome, d.RetryAfter = Allowed, 0
	}
	for i, q := range plan.quotas {
		length := int64(q.Window / time.Second)
		d.States[i].Reset = (now.Unix()/length + 1) * length
		if mode == Open {
			d.States[i].Remaining = q.Limit
		}
	}
	return d
}
