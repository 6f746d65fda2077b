package ratelimit_test

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A request counts for a user and for everybody. It is charged to both, or to none.
func ExampleTakeAll() {
	user := ratelimit.MustPlan("user", ratelimit.DefaultPenalty(), ratelimit.PerMinute(2))
	everybody := ratelimit.MustPlan("everybody", ratelimit.Penalty{}, ratelimit.PerSecond(100), ratelimit.PerMinute(3))

	embedded, err := memory.New(at(time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC)))
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"ann", "ann", "ann", "bob", "bob"} {
		var decisions [2]ratelimit.Decision
		err := ratelimit.TakeAll(context.Background(), embedded, []ratelimit.Charge{
			{Subject: "user:" + name, Plan: user, Cost: 1},
			{Subject: "everybody", Plan: everybody, Cost: 1},
		}, decisions[:])
		if err != nil {
			panic(err)
		}
		for _, d := range decisions {
			fmt.Printf("%s: %v, %d left; ", d.Plan.Name(), d.Outcome, d.Remaining())
		}
		d := decisions[engine.Deciding(decisions[:])]
		fmt.Printf("%s decides, retry after %v\n", name+"'s "+d.Plan.Name(), d.RetryAfter)
	}
	// Output:
	// user: allowed, 1 left; everybody: allowed, 2 left; ann's user decides, retry after 0s
	// user: allowed, 0 left; everybody: allowed, 1 left; ann's user decides, retry after 0s
	// user: limited, 0 left; everybody: skipped, 1 left; ann's user decides, retry after 17s
	// user: allowed, 1 left; everybody: allowed, 0 left; bob's everybody decides, retry after 0s
	// user: skipped, 1 left; everybody: limited, 0 left; bob's everybody decides, retry after 17s
}
