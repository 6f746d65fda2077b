package ratelimit_test

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// A smooth quota admits its burst at once, and then one request a second. The fixed
// windows beside it bound the day.
func ExampleQuota_Smooth() {
	clock := ratelimittest.NewClock(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
	limiter, err := memory.New(memory.Options{Now: clock.Now})
	if err != nil {
		panic(err)
	}
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(3), ratelimit.PerDay(1000))
	fmt.Println(plan)

	take := func() {
		d, err := limiter.Take(context.Background(), "owner:17", plan, 1)
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Outcome, d.Remaining(), "of", d.Limit(), "left, retry after", d.RetryAfter)
	}
	for range 4 {
		take()
	}
	clock.Advance(time.Second)
	take()

	// Output:
	// free [60/minute smooth 3 1000/day]
	// allowed 2 of 3 left, retry after 0s
	// allowed 1 of 3 left, retry after 0s
	// allowed 0 of 3 left, retry after 0s
	// limited 0 of 3 left, retry after 1s
	// allowed 0 of 3 left, retry after 0s
}
