package enginetest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// The model shows what an engine must do.
func ExampleModel() {
	clock := ratelimittest.NewClock(time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC))
	model := enginetest.NewModel(clock.Now)
	plan := ratelimit.MustPlan("small", ratelimit.Penalty{}, ratelimit.PerMinute(2))
	for range 3 {
		d, err := model.Take(context.Background(), "owner:17", plan, 1)
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Outcome, d.Remaining(), d.RetryAfter)
	}
	clock.Set(clock.Now().Add(17 * time.Second))
	d, err := model.Take(context.Background(), "owner:17", plan, 1)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Outcome, d.Remaining(), d.RetryAfter)
	// Output:
	// allowed 1 0s
	// allowed 0 0s
	// limited 0 17s
	// allowed 1 0s
}
