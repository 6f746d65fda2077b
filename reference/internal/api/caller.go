package api

import (
	"context"
	"net/http"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
)

// NetworkSubject returns the subject of a client's network, given the way
// [clientip.Key] writes it. No owner has that name: theirs are what
// [apikey.OwnerSubject] returns.
func NetworkSubject(network string) string { return "network:" + network }

// caller says whom a request counts for: the owner of a valid key, or the network
// of everybody else. A request that was peeked at is not counted.
func (a *api) caller(r *http.Request) ratelimit.Caller {
	if peekedDecision(r.Context()) != nil {
		return ratelimit.Caller{}
	}
	return a.subject(r)
}

func (a *api) subject(r *http.Request) ratelimit.Caller {
	if p, ok := bearer.FromContext[apikey.Principal](r.Context()); ok {
		return ratelimit.Caller{Subject: p.Subject, Plan: p.Plan}
	}
	network := clientip.Key(a.Client.Addr(r))
	return ratelimit.Caller{Subject: NetworkSubject(network), Plan: a.Anonymous, Network: true}
}

// peek is a middleware for requests that are not charged. They are two: a caller
// who asks for its usage, which is answered also during a ban, and one whose key
// cannot be checked at the moment, which is not its fault. Their responses have
// the header fields all the same.
//
// If the limiter cannot tell, the request goes the way of those that are charged,
// where that is dealt with.
func (a *api) peek(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !uncharged(r) {
			next.ServeHTTP(w, r)
			return
		}
		c := a.subject(r)
		d, err := a.Limiter.Peek(r.Context(), c.Subject, c.Plan)
		if err != nil {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		d.SetFields(h)
		h.Del("Retry-After") // is for those who are refused
		if a.DraftFields {
			d.SetDraftFields(h)
		}
		note(r, c, "uncharged")
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), peekedKey{}, &d)))
	})
}

func uncharged(r *http.Request) bool {
	switch bearer.OutcomeFrom(r.Context()) {
	case bearer.Unavailable:
		return true
	case bearer.Authenticated:
		return visitOf(r.Context()).route.usage
	default:
		return false
	}
}

type peekedKey struct{}

// peekedDecision returns the decision that peek found, or nil.
func peekedDecision(ctx context.Context) *ratelimit.Decision {
	d, _ := ctx.Value(peekedKey{}).(*ratelimit.Decision)
	return d
}
