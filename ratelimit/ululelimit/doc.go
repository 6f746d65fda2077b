// Package ululelimit adapts github.com/ulule/limiter/v3, in both directions: a ulule
// store as a [ratelimit.Limiter], and a [ratelimit.Limiter] as a ulule store.
//
// # A ulule store as an engine
//
// [New] makes a [ratelimit.Limiter] of any ulule store, in memory, in Redis or
// written elsewhere:
//
//	limiter, err := ululelimit.New(store, ululelimit.Options{})
//	if err != nil {
//		return err
//	}
//	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMinute(60))
//	d, err := limiter.Take(ctx, "owner:17", plan, 1)
//
// A ulule store is a counter with an expiry. What it cannot do:
//
//   - Plans with several quotas are refused. Each quota would be a call of its own,
//     and a request that the second one refuses would have been charged to the first.
//   - Windows are not aligned to the calendar. One begins with the first request
//     after the end of the one before.
//   - A denied request is charged. With a cost of 1 this makes no difference: the
//     quota was used up before. With a larger cost the rest of the quota is lost,
//     and if a limit is raised in the middle of a window, the denied requests count.
//   - Usage counts in the window of the plan alone. A subject whose limit changes
//     keeps it; under a plan with another window its usage begins at zero.
//   - There are no strikes, no bans and no refunds. The penalty of a plan is
//     ignored, and StrikesLeft is always -1.
//   - The store in memory holds any number of subjects, and its sweep may drop a
//     counter that has just started again.
//
// Set ContextTimeoutEnabled in the redis.Options of a store in Redis, so that a call
// returns when the deadline of its context passes. Without, go-redis waits for its own
// timeouts, and package ratelimit/failover, which requires of a primary that it
// returns when its context ends, would wait with it. A context that is cancelled
// without a deadline ends a call only before it is sent.
//
// What it corrects:
//
//   - ulule keeps one counter for each key, whatever the rate: with a rate for a
//     minute and one for a day on one store, the day ends with the minute. Here the
//     window is in the key.
//   - ulule rounds the time of a reset down to a second, so that clients come up to a
//     second early. Here Reset is the next whole second, at most one second late.
//
// # An engine as a ulule store
//
// [NewStore] makes a ulule store of any [ratelimit.Limiter], so that a service with
// one of ulule's middlewares changes only the engine:
//
//	engine, err := memory.New(memory.Options{})
//	if err != nil {
//		return err
//	}
//	store, err := ululelimit.NewStore(engine, ululelimit.StoreOptions{})
//	if err != nil {
//		return err
//	}
//	middleware := stdlib.NewMiddleware(limiter.New(store, rate))
//
// ulule distinguishes a key that has used its limit (Remaining 0) from one that sent
// a request after that (Reached), in Peek as well. So the engine has to count the
// first denied request: the limit of its plan is that of the rate plus one. The
// request that takes this last unit, and all after it, are Reached. A
// [limiter.Context] then shows the same as with ulule's own stores, with one call of
// the engine for each Get. What is different:
//
//   - Windows are those of the engine, mostly aligned to the UTC clock, and Reset is
//     rounded up instead of down.
//   - The count stops at one over the limit. This shows only if a limit is raised in
//     the middle of a window, or after an Increment by a negative count: both take
//     effect immediately, however many requests were denied before.
//   - Two rates of different periods under one key are counted apart, each with
//     strikes and a ban of its own. Two rates of one period share the usage, as
//     they do with ulule.
//   - Periods are whole seconds, up to [ratelimit.MaxWindow].
//   - With a penalty in [StoreOptions], keys that keep sending requests are banned.
//   - An engine with rolling windows, such as ratelimit/redisrate, gives the last unit
//     back like every other. A client that never pauses takes it each time, and is
//     not admitted before it pauses.
//
// Peek, Reset and an Increment by a negative count or by zero need engines that
// are a [ratelimit.Peeker], a [ratelimit.Resetter] and a [ratelimit.Refunder];
// without, they return an error that wraps [errors.ErrUnsupported].
//
// When an engine fails, the default error handler of ulule's middlewares panics. Set
// one that does not.
package ululelimit
