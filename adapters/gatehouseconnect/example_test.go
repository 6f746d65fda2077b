package gatehouseconnect_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"connectrpc.com/connect"

	"github.com/animalstore/gatehouse/adapters/gatehouseconnect"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A service that allows each network one call a day.
func Example() {
	plan := ratelimit.MustPlan("guests", ratelimit.Penalty{}, ratelimit.PerDay(1))
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	identify := func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: clientip.NetworkSubject(clientip.FromRemoteAddr().Addr(r)), Plan: plan, Kind: ratelimit.KindNetwork}, nil
	}
	limited, err := gatehouseconnect.New(limiter, identify, gatehouseconnect.Options{})
	if err != nil {
		log.Fatal(err)
	}
	say := func(_ context.Context, name *text) (*text, error) { return name, nil }
	handler := connect.NewUnaryHandlerSimple("/hello.v1.Hello/Say", say, connect.WithInterceptors(limited))

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/hello.v1.Hello/Say", strings.NewReader(`"bob"`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("X-RateLimit-Remaining"), w.Header().Get("Retry-After") != "")
	}
	// Output:
	// 200 0 false
	// 429 0 true
}
