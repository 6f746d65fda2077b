// Gateway is a whole API gateway: API keys, plans, bans, a deprecated route, request IDs,
// an access log and errors in one envelope, in front of two services that have none of
// these.
//
//	go run ./examples/gateway
//
// It prints KEY=…; paste this line into a second terminal, and then
//
//	curl -i -H "Authorization: Bearer $KEY" http://127.0.0.1:8081/basket/
//	curl -H "Authorization: Bearer $KEY" http://127.0.0.1:8081/pets/rex
//
// The services get X-Owner in place of the key. Clients do not get the X-RateLimit-Limit and
// X-Request-Id of the services, and get their Cache-Control. If a service is down, the
// client gets 502 bad_gateway, which is not charged.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/examples/internal/demo"
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
	verifier, key, err := demo.OneKey("ann", free)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("KEY=%s\n", key)
	demo.Serve(newHandler(verifier.Verify, startService("pets"), startService("orders")))
}

func newHandler(verify func(context.Context, string) (apikey.Principal, error), pets, orders *url.URL) (http.Handler, error) {
	auth, err1 := bearer.New("demo", verify, bearer.Options{Errors: errs})
	engine, err2 := memory.New(memory.Options{})
	limited, err3 := limit.New(engine, identify, limit.Options{ChargeIf: limit.NotServerError, Errors: errs})
	toPets, err4 := forward(pets)
	toOrders, err5 := forward(orders)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
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

// newService returns a service that the gateway forwards requests to. It trusts X-Owner,
// and sets header fields of its own.
func newService(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("X-RateLimit-Limit", "1000000") // clients of the gateway do not get this one
		w.Header().Set("X-Request-Id", "42")           // nor this one
		fmt.Fprintf(w, "%s of %s: %s\n", name, r.Header.Get("X-Owner"), r.URL.Path)
	})
}

// startService serves on a free port.
func startService(name string) *url.URL {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: newService(name), ReadHeaderTimeout: 5 * time.Second}
	go func() { log.Fatal(server.Serve(l)) }()
	return &url.URL{Scheme: "http", Host: l.Addr().String()}
}
