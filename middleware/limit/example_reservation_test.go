package limit_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// The tokens of an answer are known only when it is written. Each request reserves what
// it is likely to need, and is settled to what it has used: the last one that is admitted may
// go beyond the limit.
func ExampleReservation_Settle() {
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerDay(10_000))
	engine, err := memory.New(noon)
	if err != nil {
		panic(err)
	}
	limited, err := limit.New(engine, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "user:17", Plan: plan}, nil
	}, limit.Options{
		Cost:    func(*http.Request) int64 { return 1000 },
		Context: true,
	})
	if err != nil {
		panic(err)
	}
	used := map[string]int64{"/short": 20, "/long": 12_000}
	api := limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "the answer")
		err := limit.FromContext(r.Context()).Settle(r.Context(), used[r.URL.Path])
		if err != nil {
			fmt.Println("not settled:", err)
		}
	}))
	show(api, "/short")
	show(api, "/long")
	show(api, "/short")
	d, err := engine.Peek(context.Background(), "user:17", plan)
	if err != nil {
		panic(err)
	}
	fmt.Println("left:", d.Remaining())
	// Output:
	// /short: 200, remaining "9000"
	// /long: 200, remaining "8980"
	// /short: 429, remaining "0"
	// left: 0
}
