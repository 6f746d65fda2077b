package ratelimit_test

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var noon = at(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))

// An upload costs its user one request, and its organisation as many units as it has
// megabytes.
func ExampleCharge() {
	user := ratelimit.MustPlan("user", ratelimit.DefaultPenalty(), ratelimit.PerMinute(10))
	traffic := ratelimit.MustPlan("traffic", ratelimit.Penalty{}, ratelimit.PerDay(500))
	limiter, err := memory.New(noon)
	if err != nil {
		panic(err)
	}
	for _, megabytes := range []int64{300, 300, 100} {
		var decisions [2]ratelimit.Decision
		err := ratelimit.TakeAll(context.Background(), limiter, []ratelimit.Charge{
			{Subject: "user:ann", Plan: user, Cost: 1},
			{Subject: "organisation:7", Plan: traffic, Cost: megabytes},
		}, decisions[:])
		if err != nil {
			panic(err)
		}
		fmt.Printf("%d MB: ann %v, %d left; organisation %v, %d left\n", megabytes,
			decisions[0].Outcome, decisions[0].Remaining(), decisions[1].Outcome, decisions[1].Remaining())
	}
	// Output:
	// 300 MB: ann allowed, 9 left; organisation allowed, 200 left
	// 300 MB: ann skipped, 9 left; organisation limited, 200 left
	// 100 MB: ann allowed, 8 left; organisation allowed, 100 left
}

// A message that could not be sent is given back. In the middleware, Options.ChargeIf does
// this for requests that end in a 5xx.
func Example_adjust() {
	ctx := context.Background()
	plan := ratelimit.MustPlan("messages", ratelimit.Penalty{}, ratelimit.PerDay(100))
	limiter, err := memory.New(noon)
	if err != nil {
		panic(err)
	}
	d, err := limiter.Take(ctx, "user:ann", plan, 1)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Outcome, d.Remaining(), "left")

	if err := limiter.Adjust(ctx, "user:ann", &d, 0, ""); err != nil {
		panic(err)
	}
	now, err := limiter.Peek(ctx, "user:ann", plan)
	if err != nil {
		panic(err)
	}
	fmt.Println("after the refund", now.Remaining(), "left")
	// Output:
	// allowed 99 left
	// after the refund 100 left
}

// An operator gives a customer 300 units of the month back. The plan has only the quotas
// that get them, here without the limit of the minute.
func Example_adjustByHand() {
	ctx := context.Background()
	plan := ratelimit.MustPlan("pro", ratelimit.DefaultPenalty(), ratelimit.PerMinute(400), ratelimit.PerMonth(10_000).From(17))
	month := ratelimit.MustPlan("pro", ratelimit.Penalty{}, ratelimit.PerMonth(10_000).From(17))
	limiter, err := memory.New(noon) // redislimit and failover can do the same
	if err != nil {
		panic(err)
	}
	if _, err := limiter.Take(ctx, "customer:17", plan, 400); err != nil {
		panic(err)
	}

	d, err := limiter.Peek(ctx, "customer:17", month)
	if err != nil {
		panic(err)
	}
	d.Outcome, d.Cost = ratelimit.Allowed, 300 // also if the customer is limited
	if err := limiter.Adjust(ctx, "customer:17", &d, 0, ""); err != nil {
		panic(err)
	}

	now, err := limiter.Peek(ctx, "customer:17", plan)
	if err != nil {
		panic(err)
	}
	fmt.Println(now.States[0].Remaining, "left of the minute,", now.States[1].Remaining, "of the month")
	// Output: 0 left of the minute, 9900 of the month
}
