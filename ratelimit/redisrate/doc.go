// Package redisrate counts requests in Redis by the generic cell rate algorithm
// (GCRA) of github.com/go-redis/redis_rate/v10, as a [ratelimit.Limiter]:
//
//	client := redis.NewClient(&redis.Options{
//		Addr:                  "localhost:6379",
//		ContextTimeoutEnabled: true,
//		MaxRetries:            -1,
//	})
//	limiter, err := redisrate.New(redis_rate.NewLimiter(client), redisrate.Options{})
//	if err != nil {
//		return err
//	}
//	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMinute(60))
//	d, err := limiter.Take(ctx, "owner:17", plan, 1)
//
// A decision is one script and one round trip, on a single Redis, a Redis
// Cluster or a Ring. It is atomic among all processes that share the Redis, and
// uses the clock of the server.
//
// # The client
//
// With ContextTimeoutEnabled, a call returns when the deadline of its context passes.
// Otherwise go-redis waits for its own timeouts, and so does package
// ratelimit/failover. If a context without a deadline is cancelled, a call that has
// been sent still waits for its reply.
//
// With MaxRetries -1, go-redis sends no command twice. Otherwise it repeats a command
// after its reply was lost, and the request is charged twice.
//
// [Limiter] says how GCRA differs from fixed windows, and what redis_rate cannot do.
package redisrate
