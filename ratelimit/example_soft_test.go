package ratelimit_test

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// A customer is warned once, at 80 % of the month, and billed for what is over. The minute
// protects the service, and is what header fields show.
func ExampleQuota_Soft() {
	clock := ratelimittest.NewClock(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
	limiter, err := memory.New(memory.Options{Now: clock.Now})
	if err != nil {
		panic(err)
	}
	plan := ratelimit.MustPlan("pro", ratelimit.Penalty{}, ratelimit.PerMinute(6000), ratelimit.PerMonth(10_000).Soft())
	fmt.Println(plan)

	warn := func(subject string) { fmt.Println("warning to", subject) }
	bill := func(subject string, units int64) { fmt.Println("billed to", subject, units) }
	observe := func(subject string, d *ratelimit.Decision) {
		if used := d.Used(1); d.Allowed() {
			if used >= 8_000 && used-d.Cost < 8_000 {
				warn(subject)
			}
			bill(subject, min(max(used-10_000, 0), d.Cost))
		}
	}
	take := func(cost int64) {
		d, err := limiter.Take(context.Background(), "owner:17", plan, cost)
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Outcome, d.Used(1), "of the month,", d.Remaining(), "of", d.Limit(), "left")
		observe("owner:17", &d)
	}
	take(5000)
	clock.Advance(time.Minute)
	for range 3 {
		take(2700)
	}

	// Output:
	// pro [6000/minute 10000/month soft]
	// allowed 5000 of the month, 1000 of 6000 left
	// billed to owner:17 0
	// allowed 7700 of the month, 3300 of 6000 left
	// billed to owner:17 0
	// allowed 10400 of the month, 600 of 6000 left
	// warning to owner:17
	// billed to owner:17 400
	// limited 10400 of the month, 600 of 6000 left
}
