package api

import (
	"net/http"

	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// limits returns the middlewares that limit requests which are charged, and requests
// which are not. They refuse nothing to callers on the allow list.
func (a *api) limits() (charged, notCharged middleware.Middleware, err error) {
	var both [2]struct{ charged, notCharged middleware.Middleware }
	for i, shadow := range []bool{false, true} {
		both[i].charged, err = limit.New(ownerFirst{a.Limiter, shadow}, known(a.caller), limit.Options{
			OnFailure: a.OnLimiterFailure,
			Headers:   a.Headers,
			Refund:    true,
			Shadow:    shadow,
			Observe:   a.observe,
			Errors:    a.errors,
		})
		if err != nil {
			return nil, nil, err
		}
		both[i].notCharged, err = limit.New(a.Limiter, known(a.unchargedCaller), limit.Options{
			OnFailure: limit.FailOpen, // peek, which follows, answers 503 where that is necessary
			Headers:   a.Headers,
			Shadow:    shadow,
			Observe:   observeUncharged,
			Errors:    a.errors,
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
