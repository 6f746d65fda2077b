package limit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// The header fields of the IETF draft show every quota of the plan.
func ExampleHeaderSet() {
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	engine, err := memory.New(noon)
	if err != nil {
		panic(err)
	}
	limited, err := limit.New(engine, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "owner:17", Plan: plan}, nil
	}, limit.Options{
		Headers: limit.DraftRateLimit, // with limit.XRateLimit|limit.DraftRateLimit both
	})
	if err != nil {
		panic(err)
	}
	w := httptest.NewRecorder()
	limited(http.HandlerFunc(hello)).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println("RateLimit-Policy:", w.Header().Get("RateLimit-Policy"))
	fmt.Println("RateLimit:", w.Header().Get("RateLimit"))
	// Output:
	// RateLimit-Policy: "minute";q=60;w=60, "day";q=1000;w=86400
	// RateLimit: "minute";r=59;t=60, "day";r=999;t=43200
}
