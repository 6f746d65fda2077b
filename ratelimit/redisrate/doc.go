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
// Without, go-redis waits for its own timeouts, and package ratelimit/failover, which
// requires of a primary that it returns when its context ends, would wait with it. A
// context that is cancelled without a deadline ends a call only before it is sent.
//
// With MaxRetries -1, go-redis sends no command twice. Otherwise it repeats a command
// whose reply was lost, and the request is charged twice.
//
// # What GCRA does differently
//
// GCRA has no windows. A subject may use its whole limit at once. Then it gets one
// unit back after each window / limit. So 1000/minute admits up to 1,999 requests in
// the first 60 seconds: 1,000 at once, and one more every 60 milliseconds. In
// exchange, the quotas of all subjects do not return at the same instant.
//
// The fields of a Decision mean:
//
//   - Remaining: the units that can be used now.
//   - Reset: when the whole limit can be used again, if nothing more is used.
//   - RetryAfter: when as many units as this request costs have come back, which is
//     mostly much sooner than Reset.
//
// # What it does not do
//
//   - Plans with several quotas are refused. redis_rate decides one limit in each
//     call: a request that the second quota refuses would have been charged to the
//     first, and concurrent callers would see that.
//   - Windows are not aligned to the calendar.
//   - A subject whose limit changes keeps the share it has used, not the number:
//     30 used of 60/minute become 150 of 300/minute. Under a plan with another
//     window its usage begins at zero.
//   - There are no strikes and no bans. The penalty of a plan is ignored, and
//     StrikesLeft is always -1.
//   - There are no refunds.
//   - If the clock of the server steps back, subjects that have used anything
//     wait longer by as much.
//   - Times are floating point numbers with steps of 60 nanoseconds. Quotas of
//     more than [MaxRate] units a second are refused, because they would be
//     wrong by more than 0.3 %.
//
// # What it corrects
//
//   - redis_rate keeps one state for each key, whatever the limit, so that two
//     limits under one key corrupt each other. Here the window is in the key.
//   - Its Remaining is a floating point number rounded down, which is one too low for
//     many limits, most of all on a new key; on a denial it is always 0. Here it
//     follows from the time until the reset, to a microsecond.
package redisrate
