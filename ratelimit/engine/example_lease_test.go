package engine_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// A process admits requests out of a share, and gives back what it has not spent.
func ExampleLeaser() {
	clock := ratelimittest.NewClock(time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC))
	limiter, err := memory.New(memory.Options{Now: clock.Now})
	if err != nil {
		log.Fatal(err)
	}
	var leaser engine.Leaser = limiter
	ctx, free := context.Background(), ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))

	d, err := leaser.Lease(ctx, "user:ann", free, 1, engine.Terms{More: 20})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d.Outcome, d.Cost, "charged,", d.Remaining(), "left")

	d.Cost = 15 // five of the share are spent
	back, err := leaser.Lease(ctx, "user:ann", free, 0, engine.Terms{Back: &d})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(back.Outcome, back.Cost, "charged,", back.Remaining(), "left")
	// Output:
	// allowed 21 charged, 39 left
	// allowed 0 charged, 54 left
}
