package limit_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// What limit.ByPlan(planOf) does, with the constructors, and then what it cannot do: a
// second subject, an engine that the service can reach, a price for each request, and a
// function that sees each decision.
func Example_grow() {
	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerDay(1000))
	everybody := ratelimit.MustPlan("everybody", ratelimit.Penalty{}, ratelimit.PerSecond(5000))
	engine, err := memory.New(memory.Options{}) // or redislimit, for several processes
	if err != nil {
		panic(err)
	}
	identify := limit.Clients{}.Identify(func(r *http.Request) (string, *ratelimit.Plan) { return userOf(r), free })
	byPlan, err := limit.New(engine, func(r *http.Request) (ratelimit.Caller, error) {
		c, err := identify(r)
		c.Also = []ratelimit.Charge{{Subject: "everybody", Plan: everybody}}
		return c, err
	}, limit.Options{
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
	handler := authenticate(byPlan(api))
	request(handler, "Authorization", "Basic YW5uOnNlY3JldA==") // ann
	request(handler)
	unbanned, err := engine.Unban(context.Background(), "user:ann")
	fmt.Println("ann was banned:", unbanned, err)
	// Output:
	// user:ann allowed cost 1
	// 200 limit 1000 remaining 999
	// network:192.0.2.1/32 allowed cost 1
	// 200 limit 1000 remaining 999
	// ann was banned: false <nil>
}
