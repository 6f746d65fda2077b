// Package ratelimit has the words of rate limiting: plans with quotas and a penalty, the
// callers that are limited under them, and the decision about a request:
//
//	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(),
//		ratelimit.PerMinute(60), ratelimit.PerDay(1000))
//	limiter, err := memory.New(memory.Options{})
//	d, err := limiter.Take(ctx, "owner:17", free, 1)
//
// Package middleware/limit limits HTTP handlers in these words. Of the engines, start with
// package memory; redislimit shares limits between processes.
package ratelimit
