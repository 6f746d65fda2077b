package limit_test

import (
	"fmt"
	"net/http"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// What limit.ByUser(userOf, limit.PerDay(1000)) does, with the constructors, and then what
// it cannot do: bans, an engine that the service can reach, a price for each request, and
// a function that sees each decision.
func Example_grow() {
	plan, err := ratelimit.NewPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerDay(1000))
	if err != nil {
		panic(err)
	}
	engine, err := memory.New(memory.Options{}) // or redislimit, for several processes
	if err != nil {
		panic(err)
	}
	source := clientip.FromRemoteAddr() // or FromXForwardedFor, behind proxies
	byUser, err := ratelimit.New(engine, func(r *http.Request) (ratelimit.Caller, error) {
		user := userOf(r)
		if user == "" {
			return ratelimit.Caller{Subject: clientip.NetworkSubject(source.Addr(r)), Plan: plan}, nil
		}
		return ratelimit.Caller{Subject: "user:" + user, Plan: plan}, nil
	}, ratelimit.Options{
		Cost: func(r *http.Request) int64 {
			if r.Method == "GET" {
				return 1
			}
			return 10
		},
		Observe: func(_ *http.Request, c ratelimit.Caller, d ratelimit.Decision, _ error) {
			fmt.Println(c.Subject, d.Outcome, "cost", d.Cost)
		},
	})
	if err != nil {
		panic(err)
	}
	handler := authenticate(byUser(api))
	get(handler, "Authorization", "Basic YW5uOnNlY3JldA==") // ann
	get(handler)
	// Output:
	// user:ann allowed cost 1
	// 200 limit 1000 remaining 999
	// network:192.0.2.1/32 allowed cost 1
	// 200 limit 1000 remaining 999
}
