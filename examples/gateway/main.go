// Gateway is a whole API gateway: API keys, plans, bans, a deprecated route, request IDs,
// an access log and errors in one envelope, in front of two services that have none of
// these.
//
//	go run ./examples/gateway
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/gateway"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var (
	errs   = &apierror.Responder{RequestID: middleware.RequestIDFrom}
	free   = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	guests = ratelimit.MustPlan("guests", ratelimit.DefaultPenalty(), ratelimit.PerMinute(10)) // without a key
	basket = deprecation.MustNew(deprecation.Options{
		Since:     time.Date(2026, time.December, 1, 0, 0, 0, 0, time.UTC),
		Sunset:    time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC),
		Successor: "/orders/",
		Errors:    errs,
	})
)

func main() {
	format, err := apikey.NewFormat("demo_")
	if err != nil {
		log.Fatal(err)
	}
	secret := format.Generate()
	store := keys{secret.Digest(): {Principal: apikey.Principal{KeyID: apikey.NewKeyID(), Owner: "ann", Plan: free}}}
	handler, err := newHandler(format, store, startService("pets"), startService("orders"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("KEY=%s\n", secret.Reveal())
	server := &http.Server{Addr: "127.0.0.1:8081", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// keys has the record of each key by its digest. A real gateway has a database.
type keys map[apikey.Digest]apikey.Record

func (k keys) Lookup(_ context.Context, d apikey.Digest) (apikey.Record, error) {
	if record, ok := k[d]; ok {
		return record, nil
	}
	return apikey.Record{}, apikey.ErrUnknown
}

func newHandler(format *apikey.Format, store apikey.Store, pets, orders *url.URL) (http.Handler, error) {
	verifier, err1 := apikey.NewVerifier(format, store, apikey.Options{})
	auth, err2 := bearer.New("demo", verifier.Verify, bearer.Options{Errors: errs})
	engine, err3 := memory.New(memory.Options{})
	limited, err4 := limit.New(engine, identify, limit.Options{Refund: true, Errors: errs})
	toPets, err5 := forward(pets)
	toOrders, err6 := forward(orders)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/pets/", toPets)
	mux.Handle("/orders/", toOrders)
	mux.Handle("/basket/", basket.Enforce(toOrders))
	return middleware.Chain(errs.Mux(mux),
		middleware.RequestID, middleware.AccessLog(nil), middleware.Recover(errs), middleware.SecurityHeaders,
		auth.Identify, limited, auth.Require, middleware.BodyLimit(1<<20, errs)), nil
}

func identify(r *http.Request) (ratelimit.Caller, error) {
	if p, ok := apikey.FromContext(r.Context()); ok {
		return ratelimit.Caller{Subject: p.Subject, Plan: p.Plan, Kind: ratelimit.KindAPIKey}, nil
	}
	network := clientip.NetworkSubject(clientip.FromRemoteAddr().Addr(r))
	return ratelimit.Caller{Subject: network, Plan: guests, Kind: ratelimit.KindNetwork}, nil
}

// forward returns a handler that sends requests to the service at target. The service
// gets the owner of the key in place of the key.
func forward(target *url.URL) (http.Handler, error) {
	return gateway.New(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		principal, _ := apikey.FromContext(p.In.Context())
		p.SetURL(target)
		p.SetXForwarded()
		p.Out.Header.Del("Authorization")
		p.Out.Header.Set("X-Owner", principal.Owner)
	}}, errs)
}
