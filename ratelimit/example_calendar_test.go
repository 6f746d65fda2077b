package ratelimit_test

import (
	"context"
	"fmt"
	"time"
	_ "time/tzdata" // so that it works where the system has no time zones

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A subscription that began on 31 January is billed, and counted, from the 31st of each
// month, or its last day. Its day ends at midnight in the customer's time zone.
func ExamplePerMonth() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	now := time.Date(2027, time.February, 27, 12, 0, 0, 0, berlin)
	limiter, err := memory.New(memory.Options{Now: func() time.Time { return now }})
	if err != nil {
		panic(err)
	}
	plan := ratelimit.MustPlan("subscription", ratelimit.Penalty{},
		ratelimit.PerDay(1000).In(berlin), ratelimit.PerMonth(10_000).From(31).In(berlin))
	for range 2 {
		d, err := limiter.Take(context.Background(), "customer:17", plan, 1)
		if err != nil {
			panic(err)
		}
		for i := range engine.Of(plan).Len() {
			state := d.States[i]
			fmt.Println(engine.Of(plan).Quota(i), "has", state.Remaining, "left until", time.Unix(state.Reset, 0).In(berlin).Format(time.DateTime))
		}
		now = now.AddDate(0, 0, 1)
	}
	// Output:
	// 1000/day in Europe/Berlin has 999 left until 2027-02-28 00:00:00
	// 10000/month from 31 in Europe/Berlin has 9999 left until 2027-02-28 00:00:00
	// 1000/day in Europe/Berlin has 999 left until 2027-03-01 00:00:00
	// 10000/month from 31 in Europe/Berlin has 9999 left until 2027-03-31 00:00:00
}
