package ululelimit_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ulumemory "github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ululelimit"
)

// A ulule store as an engine.
func ExampleNew() {
	engine, err := ululelimit.New(ulumemory.NewStore())
	if err != nil {
		log.Fatal(err)
	}
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerHour(2))
	for range 3 {
		d, err := engine.Take(context.Background(), "owner:17", plan, 1)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%v, %d of %d remaining\n", d.Outcome, d.Remaining(), d.Limit())
	}
	// Output:
	// allowed, 1 of 2 remaining
	// allowed, 0 of 2 remaining
	// limited, 0 of 2 remaining
}

// ulule's middleware with another engine: only the store is new.
func ExampleNewStore() {
	engine, err := memory.New(memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	store, err := ululelimit.NewStore(engine, ululelimit.StoreOptions{
		Prefix:  "network:",
		Penalty: ratelimit.DefaultPenalty(), // which ulule does not have
	})
	if err != nil {
		log.Fatal(err)
	}
	rate := limiter.Rate{Limit: 2, Period: 24 * time.Hour}
	middleware := stdlib.NewMiddleware(limiter.New(store, rate),
		stdlib.WithErrorHandler(func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "try again later", http.StatusServiceUnavailable) // ulule's own panics
		}))

	handler := middleware.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "welcome")
	}))
	for range 3 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Println(w.Code, w.Header().Get("X-RateLimit-Remaining"), "of", w.Header().Get("X-RateLimit-Limit"), "remaining")
	}
	// Output:
	// 200 1 of 2 remaining
	// 200 0 of 2 remaining
	// 429 0 of 2 remaining
}
