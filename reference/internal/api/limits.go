package api

import (
	"net/http"

	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// limits returns the middlewares that limit requests which are charged, and requests
// which are not. They refuse nothing to callers on the allow list.
func (a *api) limits() (charged, notCharged middleware.Middleware, err error) {
	var both [2]struct{ charged, notCharged middleware.Middleware }
	for i, shadow := range []bool{false, true} {
		both[i].charged, err = limit.New(ownerFirst{a.Limiter, shadow}, known(a.caller), limit.Options{
			FailOpen: a.FailOpen,
			Headers:  a.Headers,
			ChargeIf: limit.NotServerError,
			Shadow:   shadow,
			Observe:  a.observe,
			Errors:   a.errors,
		})
		if err != nil {
			return nil, nil, err
		}
		both[i].notCharged, err = limit.New(a.Limiter, known(a.unchargedCaller), limit.Options{
			FailOpen: true, // peek, which follows, answers 503 where that is necessary
			Headers:  a.Headers,
			Shadow:   shadow,
			Observe:  observeUncharged,
			Errors:   a.errors,
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return unlessAllowed(both[0].charged, both[1].charged), unlessAllowed(both[0].notCharged, both[1].notCharged), nil
}

// known adapts a function that always knows the caller of a request to
// [limit.New].
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
	c := ownerOf(p)
	c.Also = keyCharges(p)
	return c
}

func ownerOf(p apikey.Principal) ratelimit.Caller {
	return ratelimit.Caller{Subject: p.Subject, Plan: p.Plan, Kind: ratelimit.KindAPIKey}
}

// unchargedCaller returns the caller of a request that is not charged. Such requests
// have a quota of their own, so a flood of them is limited and uses up no other quota.
func (a *api) unchargedCaller(r *http.Request) ratelimit.Caller {
	c := a.caller(r)
	c.Subject, c.Plan, c.Also = "uncharged:"+c.Subject, a.Uncharged, nil
	return c
}

// chooseLimit returns a middleware that sends requests through limit. Requests that
// are not charged pass limitUncharged and peek instead, both at the same time.
func (a *api) chooseLimit(limit, limitUncharged middleware.Middleware) middleware.Middleware {
	return func(next http.Handler) http.Handler {
		charged := limit(next)
		notCharged := limitUncharged(a.peek(next, charged))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isUncharged(r) {
				requestInfoOf(r.Context()).look = a.look(r.Context(), a.caller(r))
				notCharged.ServeHTTP(w, r)
				return
			}
			charged.ServeHTTP(w, r)
		})
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
// the limiter fails, the request goes to charged, which answers as FailOpen
// says, without asking the limiter.
func (a *api) peek(next, charged http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, info := a.caller(r), requestInfoOf(r.Context())
		p, err := info.look()
		if err != nil {
			info.undecided = err
			charged.ServeHTTP(w, r)
			return
		}
		d, h := p.deciding(), w.Header()
		for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
			delete(h, name) // those of requests that are not charged
		}
		a.Headers.Set(h, &d)
		h.Del("Retry-After") // this request is not refused
		logDecision(r, c, d, uncharged)
		info.peeked = p
		next.ServeHTTP(w, r)
	})
}
