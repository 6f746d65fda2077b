// Keys is a service with API keys and plans. It keeps its keys in a map. At the start it
// creates one of each plan and prints them.
//
//	go run ./examples/keys
//	curl -i -H 'Authorization: Bearer demo_…' http://127.0.0.1:8081/whoami
//
// Requests without a valid key are counted for the network, so that a client that tries keys
// does not use the quota of an owner.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/examples/internal/demo"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var (
	free = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	pro  = ratelimit.MustPlan("pro", ratelimit.DefaultPenalty(), ratelimit.PerMinute(300), ratelimit.PerDay(10_000))
)

func main() {
	format, err := apikey.NewFormat("demo_")
	if err != nil {
		log.Fatal(err)
	}
	store := keys{}
	for _, plan := range []*ratelimit.Plan{free, pro} {
		fmt.Printf("%-5s %s\n", plan.Name(), store.issue(format, plan)) // shown once, stored nowhere
	}
	demo.Serve(newHandler(format, store))
}

// keys has the record of each key by its digest. The key itself is not stored.
type keys map[apikey.Digest]apikey.Record[apikey.Principal]

// issue adds a key, and returns it.
func (k keys) issue(format *apikey.Format, plan *ratelimit.Plan) string {
	secret := format.Generate()
	k[secret.Digest()] = apikey.Record[apikey.Principal]{
		Principal: apikey.Principal{KeyID: apikey.NewKeyID(), Owner: plan.Name() + " customer", Plan: plan},
	}
	return secret.Reveal()
}

func (k keys) Lookup(_ context.Context, d apikey.Digest) (apikey.Record[apikey.Principal], error) {
	record, ok := k[d]
	if !ok {
		return apikey.Record[apikey.Principal]{}, apikey.ErrUnknown
	}
	return record, nil
}

func newHandler(format *apikey.Format, store apikey.Store[apikey.Principal]) (http.Handler, error) {
	errs := &apierror.Responder{RequestID: middleware.RequestIDFrom}

	source := clientip.FromRemoteAddr() // behind a reverse proxy: clientip.FromXForwardedFor
	verifier, err := apikey.NewVerifier(format, store, apikey.Options{Source: source})
	if err != nil {
		return nil, err
	}
	auth, err := bearer.New("demo", verifier.Verify, bearer.Options{Errors: errs})
	if err != nil {
		return nil, err
	}
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		return nil, err
	}

	// A request with a valid key is counted for the owner of the key, any other request
	// for the network. So a client that tries keys does not use the quota of an owner. Nothing is
	// served without a key, so that bans of networks stop only such clients.
	guests := ratelimit.MustPlan("guests", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))
	guest := limit.Addresses{Source: source}.Identify(func(*http.Request) (string, *ratelimit.Plan, error) { return "", guests, nil })
	limited, err := limit.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
		if p, ok := bearer.FromContext[apikey.Principal](r.Context()); ok {
			return ratelimit.Caller{Subject: p.Subject, Plan: p.Plan, Kind: ratelimit.KindAPIKey}, nil
		}
		c, err := guest(r) // also warns if source does not know the proxy
		c.Kind = ratelimit.KindNetwork
		return c, err
	}, limit.Options{ChargeIf: limit.NotServerError, Errors: errs}) // while keys cannot be verified, 503 is not charged
	if err != nil {
		return nil, err
	}

	mux := http.NewServeMux()
	mux.Handle("GET /whoami", errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		p, _ := bearer.FromContext[apikey.Principal](r.Context())
		_, err := fmt.Fprintf(w, "%s, on the plan %s\n", p.Owner, p.Plan.Name())
		return err
	}))

	// The order matters: limited needs the principal that Identify adds, and also counts
	// requests that Require refuses. So a 401 and a 404 have the X-RateLimit fields too.
	return middleware.Chain(errs.Mux(mux),
		middleware.RequestID,
		errs.Recover,
		middleware.SecurityHeaders,
		auth.Identify,
		limited,
		auth.Require,
	), nil
}
