package limittest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/limittest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A test moves the clock, causes an outage, and reads what the service has asked for.
func Example() {
	clock := limittest.NewClock(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
	engine, err := memory.New(memory.Options{Now: clock.Now})
	if err != nil {
		panic(err)
	}
	recorder := limittest.NewRecorder(engine)
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	limit, err := ratelimit.New(recorder, func(*http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "user:ann", Plan: plan}, nil
	}, ratelimit.Options{})
	if err != nil {
		panic(err)
	}
	service := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
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
