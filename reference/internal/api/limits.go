package api

import (
	"context"
	"net/http"

	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// limits returns the middleware that limits charged requests, and the one that limits requests
// that are not charged.
func (a *api) limits() (charged, notCharged middleware.Middleware, err error) {
	charged, err = limit.New(ownerFirst{a.Limiter}, known(a.caller), limit.Options{
		FailOpen: a.OnFailure == "open",
		Headers:  a.headers(),
		ChargeIf: limit.NotServerError,
		Observe:  a.observe,
		Errors:   a.errors,
	})
	if err != nil {
		return nil, nil, err
	}
	notCharged, err = limit.New(a.Limiter, known(a.unchargedCaller), limit.Options{
		Name:     "uncharged", // a quota of its own
		FailOpen: true,        // peek, which follows, answers 503 where that is necessary
		Headers:  a.headers(),
		Observe:  observeUncharged,
		Errors:   a.errors,
	})
	return charged, notCharged, err
}

// known adapts a function that always knows the caller of a request for [limit.New].
func known(caller func(*http.Request) ratelimit.Caller) func(*http.Request) (ratelimit.Caller, error) {
	return func(r *http.Request) (ratelimit.Caller, error) { return caller(r), nil }
}

// caller returns the subject of a request and its plan: the owner of a valid key, or the
// network of any other client. A key with limits of its own is charged too.
func (a *api) caller(r *http.Request) ratelimit.Caller {
	p, ok := bearer.FromContext[apikey.Principal](r.Context())
	if !ok {
		return ratelimit.Caller{Subject: requestInfoOf(r.Context()).network, Plan: a.Anonymous, Kind: ratelimit.KindNetwork}
	}
	return ratelimit.Caller{Subject: p.Subject, Plan: p.Plan, Kind: ratelimit.KindAPIKey, Also: keyCharges(p)}
}

// unchargedCaller returns the caller of a request that is not charged. Such requests
// have a quota of their own, so a flood of them is limited and uses up no other quota.
func (a *api) unchargedCaller(r *http.Request) ratelimit.Caller {
	c := a.caller(r)
	c.Plan, c.Also = a.Uncharged, nil
	return c
}

// chooseLimit returns a middleware that sends requests through limit. Requests that
// are not charged pass limitUncharged and peek instead.
func (a *api) chooseLimit(limit, limitUncharged middleware.Middleware) middleware.Middleware {
	return func(next http.Handler) http.Handler {
		charged := limit(next)
		return choose(isUncharged, limitUncharged(a.peek(next, charged)), charged)
	}
}

// isUncharged reports whether a request behind the gate is not charged. There are two
// kinds: getUsage, which is answered during a ban too, and requests with a key that
// cannot be verified at the moment, which is not the caller's fault.
func isUncharged(r *http.Request) bool {
	switch bearer.OutcomeFrom(r.Context()) {
	case bearer.Unavailable:
		return true
	case bearer.Authenticated:
		return requestInfoOf(r.Context()).route.usage
	default:
		return false
	}
}

// peek sets the header fields of the caller's plan without charging the request. If
// the limiter fails, the request goes to charged, which answers as
// on_redis_failure says.
func (a *api) peek(next, charged http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, info := a.caller(r), requestInfoOf(r.Context())
		p, err := a.look(r.Context(), c)
		if err != nil {
			charged.ServeHTTP(w, r)
			return
		}
		d, h := p.deciding(), w.Header()
		for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
			delete(h, name) // those of requests that are not charged
		}
		a.headers().Set(h, &d, p.caller, p.key)
		h.Del("Retry-After") // this request is not refused
		h.Del("X-RateLimit-Banned")
		logDecision(r, c, d, uncharged)
		info.peeked = p
		next.ServeHTTP(w, r)
	})
}

// KeySubject returns the subject that the limits of a key alone are counted for.
func KeySubject(id string) string { return "key:" + id }

// keyCharges returns what a request is charged in addition to its owner: the limits of its
// key, if it has any. They never lead to a strike or a ban.
func keyCharges(p apikey.Principal) []ratelimit.Charge {
	if p.Limits == nil {
		return nil
	}
	return []ratelimit.Charge{{Subject: KeySubject(p.KeyID), Plan: p.Limits}}
}

// ownerFirst is a limiter for owners and their keys. A request with a key that has limits of
// its own is charged to the key and the owner, or to neither. The response shows the decision
// that matters most, but during a ban of the owner always the ban.
type ownerFirst struct{ Limiter }

// TakeAll implements [engine.MultiTaker]. The first charge is that of the owner.
func (l ownerFirst) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	err := l.Limiter.TakeAll(ctx, charges, decisions)
	if err == nil && decisions[0].Outcome == ratelimit.Banned {
		for i := 1; i < len(decisions); i++ {
			decisions[i].Outcome = ratelimit.Skipped
		}
	}
	return err
}

// A peeked is what the caller of a request that is not charged has left, and the limits of
// its key, which has no plan if there are none.
type peeked struct{ caller, key ratelimit.Decision }

// look peeks at everything that a request of c would be charged to.
func (a *api) look(ctx context.Context, c ratelimit.Caller) (p *peeked, err error) {
	p = new(peeked)
	p.caller, err = a.Limiter.Peek(ctx, c.Subject, c.Plan)
	for _, key := range c.Also { // one key at most
		if err == nil {
			p.key, err = a.Limiter.Peek(ctx, key.Subject, key.Plan)
		}
	}
	return p, err
}

// deciding returns the decision that a response shows; see [ownerFirst].
func (p *peeked) deciding() ratelimit.Decision {
	both := [...]ratelimit.Decision{p.caller, p.key}
	if p.caller.Outcome == ratelimit.Banned {
		return p.caller
	}
	return both[engine.Deciding(both[:])]
}
