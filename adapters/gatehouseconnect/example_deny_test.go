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
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A service answers limited calls in the client's language. Code and details, such as
// RetryInfo, stay those of the default.
func ExampleOptions_deny() {
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerDay(1))
	engine, err := memory.New(memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	identify := func(*http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "owner:17", Plan: plan}, nil
	}
	limited, err := gatehouseconnect.New(engine, identify, gatehouseconnect.Options{
		Deny: func(r *http.Request, c ratelimit.Caller, d ratelimit.Decision) error {
			if d.Outcome != ratelimit.Limited || !strings.HasPrefix(r.Header.Get("Accept-Language"), "de") {
				return nil // the default
			}
			e := limit.Denial(c, &d)
			return apierror.New(e.Status, e.Code, "Für heute ist es genug.")
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	say := func(_ context.Context, name *text) (*text, error) { return name, nil }
	handler := connect.NewUnaryHandlerSimple("/hello.v1.Hello/Say", say, connect.WithInterceptors(limited))

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/hello.v1.Hello/Say", strings.NewReader(`"bob"`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept-Language", "de-CH, en;q=0.5")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		body, _, _ := strings.Cut(w.Body.String(), `,"details"`)
		fmt.Println(w.Code, w.Header().Get("Retry-After") != "", body)
	}
	// Output:
	// 200 false "bob"
	// 429 true {"code":"resource_exhausted","message":"Für heute ist es genug."
}
