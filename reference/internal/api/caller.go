package api

import (
	"context"
	"net/http"

	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit"
)

// caller returns the subject of a request and its plan: the owner of a valid key,
// or the network of any other client.
func (a *api) caller(r *http.Request) ratelimit.Caller {
	if p, ok := bearer.FromContext[apikey.Principal](r.Context()); ok {
		return ratelimit.Caller{Subject: p.Subject, Plan: p.Plan}
	}
	return ratelimit.Caller{Subject: visitOf(r.Context()).network, Plan: a.Anonymous, Network: true}
}

// unchargedCaller returns the same caller as one that makes requests which are not
// charged. Those have a quota of their own, so that a flood of them is limited and
// uses up nothing else.
func (a *api) unchargedCaller(r *http.Request) ratelimit.Caller {
	c := a.caller(r)
	c.Subject, c.Plan = "uncharged:"+c.Subject, a.Uncharged
	return c
}

// count returns a middleware that sends requests through charge, or those that are
// not charged through spare and then through peek.
func (a *api) count(charge, spare middleware.Middleware) middleware.Middleware {
	return func(next http.Handler) http.Handler {
		charged := charge(next)
		uncharged := spare(a.peek(next, charged))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isUncharged(r) {
				uncharged.ServeHTTP(w, r)
				return
			}
			charged.ServeHTTP(w, r)
		})
	}
}

// isUncharged names the requests that are not charged. There are two kinds: an
// owner asks for its usage, which is answered also during a ban, and the key
// cannot be checked at the moment, which is not the caller's fault.
func isUncharged(r *http.Request) bool {
	switch bearer.OutcomeFrom(r.Context()) {
	case bearer.Unavailable:
		return true
	case bearer.Authenticated:
		return visitOf(r.Context()).route.usage
	default:
		return false
	}
}

// peek gives the response the header fields of the caller's plan without charging
// it. If the limiter cannot tell them, the request is sent to charged, which deals
// with that.
func (a *api) peek(next, charged http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := a.caller(r)
		d, err := a.Limiter.Peek(r.Context(), c.Subject, c.Plan)
		if err != nil {
			charged.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		d.SetHeaders(h)
		h.Del("Retry-After") // is for requests that are refused
		if a.DraftHeaders {
			d.SetDraftHeaders(h)
		}
		note(r, c, d, "uncharged")
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), peekedKey{}, &d)))
	})
}

type peekedKey struct{}

// peekedDecision returns the decision that peek found, or nil.
func peekedDecision(ctx context.Context) *ratelimit.Decision {
	d, _ := ctx.Value(peekedKey{}).(*ratelimit.Decision)
	return d
}
