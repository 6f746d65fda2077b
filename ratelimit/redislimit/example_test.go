package redislimit_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

func Example() {
	server, err := miniredis.Run() // in place of a real one
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	server.SetTime(time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC))

	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	limiter, err := redislimit.New(client, redislimit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(2), ratelimit.PerDay(1000))
	for range 3 {
		d, err := limiter.Take(context.Background(), "alice", plan, 1)
		if err != nil {
			log.Fatal(err) // no decision: deny, admit, or ask another engine
		}
		fmt.Printf("%v: %d of %d left, retry after %v\n", d.Outcome, d.Remaining(), d.Limit(), d.RetryAfter)
	}
	// Output:
	// allowed: 1 of 2 left, retry after 0s
	// allowed: 0 of 2 left, retry after 0s
	// limited: 0 of 2 left, retry after 30s
}

// A request is charged an estimate, and settled when its cost is known: once, however often
// the call is repeated because its answer was lost.
func ExampleLimiter_Adjust() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	noon := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	server.SetTime(noon)

	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	limiter, err := redislimit.New(client, redislimit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	d, err := limiter.Take(context.Background(), "alice", plan, 10)
	if err != nil {
		log.Fatal(err)
	}
	id := rand.Text()
	for range 2 {
		if err := limiter.Adjust(context.Background(), "alice", &d, 15, id); err != nil {
			log.Fatal(err)
		}
	}
	if d, err = limiter.Peek(context.Background(), "alice", plan); err != nil {
		log.Fatal(err)
	}
	fmt.Println(d.States[0].Remaining, "left in the minute,", d.States[1].Remaining, "in the day")
	// Output: 45 left in the minute, 985 in the day
}
