package ratelimittest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// A test moves the clock, causes an outage, and reads what the service has asked for.
func Example() {
	clock := ratelimittest.NewClock(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
	limiter, err := memory.New(memory.Options{Now: clock.Now})
	if err != nil {
		panic(err)
	}
	recorder := ratelimittest.NewRecorder(limiter)
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	limited, err := limit.New(recorder, func(*http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "user:ann", Plan: plan}, nil
	}, limit.Options{})
	if err != nil {
		panic(err)
	}
	service := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	send := func() {
		w := httptest.NewRecorder()
		service.ServeHTTP(w, httptest.NewRequest("GET", "/pets", nil))
		fmt.Println(w.Code)
	}
	send()
	send()
	clock.Advance(time.Minute) // the next window
	send()
	recorder.Fail() // an outage of the engine
	send()
	fmt.Println(len(recorder.Calls()), "calls, the first for", recorder.Calls()[0].Subject)
	// Output:
	// 200
	// 429
	// 200
	// 503
	// 4 calls, the first for user:ann
}
