package engine_test

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A customer has used 50 units on a service elsewhere, and 20 of them are given back later.
func ExampleAddUsage() {
	now := time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC)
	limiter, err := memory.New(memory.Options{Now: func() time.Time { return now }})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerHour(60).Smooth(60), ratelimit.PerDay(100), ratelimit.PerMonth(1000))
	for _, units := range []int64{50, -20} {
		if err := engine.AddUsage(ctx, limiter, "user:ann", plan, units, now, ""); err != nil {
			panic(err)
		}
		d, err := limiter.Peek(ctx, "user:ann", plan)
		fmt.Println("left:", d.States[0].Remaining, d.States[1].Remaining, d.States[2].Remaining, err)
	}
	// Output:
	// left: 10 50 950 <nil>
	// left: 30 70 970 <nil>
}
