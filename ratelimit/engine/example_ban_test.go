package engine_test

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// An operator bans a user for two hours, and unbans it again. The answer to its requests
// says "You are temporarily banned: your exports load each item alone."
func ExampleBanner() {
	ctx := context.Background()
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMinute(60))
	limiter, err := memory.New(memory.Options{Now: func() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }})
	if err != nil {
		panic(err)
	}
	var banner engine.Banner = limiter // redislimit and failover are Banners too

	if err := banner.Ban(ctx, "user:eve", 2*time.Hour, "your exports load each item alone"); err != nil {
		panic(err)
	}
	bans, err := banner.Bans(ctx)
	if err != nil {
		panic(err)
	}
	for _, b := range bans {
		fmt.Println(b.Subject, "until", b.Ends.UTC().Format(time.TimeOnly)+":", b.Reason)
	}
	d, err := limiter.Take(ctx, "user:eve", plan, 1)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Outcome, "retry after", d.RetryAfter)

	if _, err := banner.Unban(ctx, "user:eve"); err != nil {
		panic(err)
	}
	d, err = limiter.Take(ctx, "user:eve", plan, 1)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Outcome, d.Remaining(), "left")
	// Output:
	// user:eve until 14:00:00: your exports load each item alone
	// banned retry after 2h0m0s
	// allowed 59 left
}
