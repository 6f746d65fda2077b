// Sqlkeys is a service with its API keys in SQLite: keys with scopes, live keys and test
// keys, and keys that their owners revoke. Store.go has the SQL, which is what another
// database needs; pets.go has what the keys give access to.
//
//	go run ./examples/sqlkeys
//	curl -H "Authorization: Bearer $LIVE" http://127.0.0.1:8081/pets
//	curl -X DELETE -H "Authorization: Bearer $TEST" http://127.0.0.1:8081/key
//
// The principal, account, embeds apikey.Principal and adds scopes. A key is looked up once in
// 30 seconds: the process that revokes a key refuses it at once, others within 30 seconds.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

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
	guests = ratelimit.MustPlan("guests", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))
	free   = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	pro    = ratelimit.MustPlan("pro", ratelimit.DefaultPenalty(), ratelimit.PerMinute(300), ratelimit.PerDay(10_000))
)

func main() {
	ctx := context.Background()
	keys, err := openStore(ctx, "keys.db", free, pro)
	if err != nil {
		log.Fatal(err)
	}
	liveKey, err := keys.issue(ctx, keys.live, "ann", pro, "pets:read pets:write", time.Time{})
	if err != nil {
		log.Fatal(err)
	}
	testKey, err := keys.issue(ctx, keys.test, "ann", free, "pets:read", time.Now().AddDate(0, 0, 7))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("LIVE=%s\nTEST=%s\n", liveKey.Reveal(), testKey.Reveal()) // shown once, stored nowhere
	demo.Serve(newHandler(keys))
}

func newHandler(keys *store) (http.Handler, error) {
	errs := &apierror.Responder{RequestID: middleware.RequestIDFrom}

	// A key is looked up at most once in 30 seconds. A process that revokes a key calls
	// Forget; in others the revocation takes effect within 30 seconds.
	verifier, err := apikey.NewVerifier(keys.live, keys, apikey.Options{
		MoreFormats: []*apikey.Format{keys.test},
		TTL:         30 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	auth, err := bearer.New("pets", verifier.Verify, bearer.Options{Errors: errs})
	if err != nil {
		return nil, err
	}
	engine, err := memory.New(memory.Options{})
	if err != nil {
		return nil, err
	}
	source := clientip.FromRemoteAddr()
	limited, err := limit.New(engine, func(r *http.Request) (ratelimit.Caller, error) {
		if a, ok := bearer.FromContext[account](r.Context()); ok {
			return ratelimit.Caller{Subject: a.Subject, Plan: a.Plan, Kind: ratelimit.KindAPIKey}, nil
		}
		return ratelimit.Caller{Subject: clientip.NetworkSubject(source.Addr(r)), Plan: guests, Kind: ratelimit.KindNetwork}, nil
	}, limit.Options{Errors: errs})
	if err != nil {
		return nil, err
	}
	return middleware.Chain(errs.Mux(newMux(keys, verifier, errs)),
		middleware.RequestID,
		middleware.Recover(errs),
		middleware.SecurityHeaders,
		auth.Identify,
		limited,
		auth.Require,
	), nil
}
