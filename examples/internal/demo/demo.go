// Package demo has what several examples need and none of them is about: API keys in a map,
// and the gate of the services on chi, Echo and Gin.
package demo

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Serve serves a handler on 127.0.0.1:8081 until the process ends. It takes what a
// constructor returns.
func Serve(handler http.Handler, err error) {
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8081", Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	log.Printf("listening on http://%s", server.Addr)
	log.Fatal(server.ListenAndServe())
}

// records has the record of each key by its digest. A real service has a database.
type records map[apikey.Digest]apikey.Record[apikey.Principal]

func (k records) Lookup(_ context.Context, d apikey.Digest) (apikey.Record[apikey.Principal], error) {
	record, ok := k[d]
	if !ok {
		return apikey.Record[apikey.Principal]{}, apikey.ErrUnknown
	}
	return record, nil
}

// NewKeys returns an authentication that knows one key of each owner, under its plan, and the
// keys by owner.
func NewKeys(errs *apierror.Responder, plans map[string]*ratelimit.Plan) (auth *bearer.Authenticator[apikey.Principal], keys map[string]string, err error) {
	format, err := apikey.NewFormat("demo_")
	if err != nil {
		return nil, nil, err
	}
	store, keys := records{}, map[string]string{}
	for owner, plan := range plans {
		secret := format.Generate()
		store[secret.Digest()] = apikey.Record[apikey.Principal]{Principal: apikey.Principal{KeyID: apikey.NewKeyID(), Owner: owner, Plan: plan}}
		keys[owner] = secret.Reveal()
	}
	verifier, err := apikey.NewVerifier(format, store, apikey.Options{})
	if err != nil {
		return nil, nil, err
	}
	auth, err = bearer.New("demo", verifier.Verify, bearer.Options{Errors: errs})
	return auth, keys, err
}

var (
	free   = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(3), ratelimit.PerDay(1000))
	guests = ratelimit.MustPlan("guests", ratelimit.DefaultPenalty(), ratelimit.PerMinute(2))

	users = map[string]string{"token-of-ann": "ann"} // by token; package apikey keeps digests instead
)

// NewGate returns the authentication and the limit of a service, in which ann's token is
// token-of-ann. Requests that end in a 5xx are not charged.
func NewGate(errs *apierror.Responder) (auth *bearer.Authenticator[string], limited func(http.Handler) http.Handler, err error) {
	auth, err = bearer.New("pets", func(_ context.Context, token string) (string, error) {
		user, ok := users[token]
		if !ok {
			return "", bearer.ErrInvalid
		}
		return user, nil
	}, bearer.Options{Errors: errs})
	if err != nil {
		return nil, nil, err
	}
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		return nil, nil, err
	}
	source := clientip.FromRemoteAddr()
	limited, err = limit.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
		if user, ok := bearer.FromContext[string](r.Context()); ok {
			return ratelimit.Caller{Subject: "user:" + user, Plan: free, Kind: ratelimit.KindAPIKey}, nil
		}
		return ratelimit.Caller{Subject: clientip.NetworkSubject(source.Addr(r)), Plan: guests, Kind: ratelimit.KindNetwork}, nil
	}, limit.Options{ChargeIf: limit.NotServerError, Errors: errs})
	return auth, limited, err
}
