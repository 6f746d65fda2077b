package redisrate_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redisrate"
)

// A burst of the whole limit is admitted; then a unit comes back every 100
// seconds.
func Example() {
	server, err := miniredis.Run() // a Redis inside this program, for the example
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()

	limiter, err := redisrate.New(redis_rate.NewLimiter(client), redisrate.Options{})
	if err != nil {
		log.Fatal(err)
	}
	plan := ratelimit.MustPlan("login", ratelimit.Penalty{}, ratelimit.PerHour(36))

	ctx := context.Background()
	for _, cost := range []int64{1, 35, 1} {
		d, err := limiter.Take(ctx, "owner:17", plan, cost)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d: %v, %d of %d remaining, Retry-After %.0f\n", cost, d.Outcome, d.Remaining(), d.Limit(), math.Ceil(d.RetryAfter.Seconds()))
	}
	// Output:
	// 1: allowed, 35 of 36 remaining, Retry-After 0
	// 35: allowed, 0 of 36 remaining, Retry-After 0
	// 1: limited, 0 of 36 remaining, Retry-After 100
}

// GCRA in redis_rate decides one quota at a time.
func ExampleLimiter_Peek() {
	limiter, err := redisrate.New(redis_rate.NewLimiter(redis.NewClient(new(redis.Options))), redisrate.Options{})
	if err != nil {
		log.Fatal(err)
	}
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	_, err = limiter.Peek(context.Background(), "owner:17", plan)
	fmt.Println(err)
	// Output:
	// ratelimit: invalid call: redisrate needs a plan with 1 quota, got 2 in free [60/minute 1000/day]
}
