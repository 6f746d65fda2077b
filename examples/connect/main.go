// Connect is a Connect service on the full stack: request IDs, recovery, API keys, limits.
// It answers the Connect, gRPC and gRPC-Web protocols, over HTTP/1.1 and h2c.
//
//	go run ./examples/connect
//
// It prints KEY=…; paste this line into a second terminal, and then
//
//	for i in 1 2 3; do curl -i -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \
//	    -d '"bob"' http://127.0.0.1:8081/hello.v1.Hello/Say; done
//
// Interceptors do what needs the form of a Connect error: the key and the limit. Middlewares
// do what is the same for all requests.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/animalstore/gatehouse/adapters/gatehouseconnect"
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

func main() {
	handler, key, err := newHandler()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("KEY=" + key)
	server := &http.Server{Addr: "127.0.0.1:8081", Handler: handler, ReadHeaderTimeout: 5 * time.Second, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true) // for gRPC without TLS
	log.Printf("listening on http://%s", server.Addr)
	log.Fatal(server.ListenAndServe())
}

// say greets the person with this name.
func say(ctx context.Context, name *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	if name.Value == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("the name must not be empty"))
	}
	p, _ := bearer.FromContext[apikey.Principal](ctx)
	return wrapperspb.String("hello " + name.Value + ", from " + p.Owner), nil
}

var (
	free   = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(2), ratelimit.PerDay(1000))
	guests = ratelimit.MustPlan("guests", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))
)

// identify counts a call for the owner of its key, and without a valid key for its network.
func identify(r *http.Request) (ratelimit.Caller, error) {
	if p, ok := bearer.FromContext[apikey.Principal](r.Context()); ok {
		return ratelimit.Caller{Subject: p.Subject, Plan: p.Plan, Kind: ratelimit.KindAPIKey}, nil
	}
	return ratelimit.Caller{Subject: clientip.NetworkSubject(clientip.FromRemoteAddr().Addr(r)), Plan: guests, Kind: ratelimit.KindNetwork}, nil
}

func newHandler() (_ http.Handler, key string, err error) {
	errs := &apierror.Responder{RequestID: middleware.RequestIDFrom}
	auth, keys, err := demo.NewKeys(errs, map[string]*ratelimit.Plan{"ann": free})
	if err != nil {
		return nil, "", err
	}
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		return nil, "", err
	}
	limit, err := gatehouseconnect.New(limiter, identify, gatehouseconnect.Options{
		Options:  limit.Options{Errors: errs},
		ChargeIf: gatehouseconnect.NotServerError,
	})
	if err != nil {
		return nil, "", err
	}
	const method = "/hello.v1.Hello/Say" // generated code has a constant
	mux := http.NewServeMux()
	mux.Handle(method, connect.NewUnaryHandlerSimple(method, say, connect.WithInterceptors(
		gatehouseconnect.NewIdentify(auth), limit, gatehouseconnect.NewRequire(auth))))
	return middleware.Chain(errs.Mux(mux), middleware.RequestID, errs.Recover, middleware.SecurityHeaders), keys["ann"], nil
}
