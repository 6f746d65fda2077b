// Package ululelimit adapts github.com/ulule/limiter/v3, in both directions: a ulule
// store as a [ratelimit.Limiter], and an engine as a ulule store.
//
// # A ulule store as an engine
//
// [New] makes a [ratelimit.Limiter] of any ulule store, in memory, in Redis or
// written elsewhere:
//
//	limiter, err := ululelimit.New(store)
//	if err != nil {
//		return err
//	}
//	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMinute(60))
//	d, err := limiter.Take(ctx, "owner:17", plan, 1)
//
// Set ContextTimeoutEnabled in the redis.Options of a store in Redis, so that a call
// returns when the deadline of its context passes. Otherwise go-redis waits for its own
// timeouts, and so does package ratelimit/failover. If a context without a deadline is
// cancelled, a call that has been sent still waits for its reply.
//
// A ulule store is a counter with an expiry: [Limiter] says what it cannot do.
//
// # An engine as a ulule store
//
// [NewStore] makes a ulule store of an engine, so that a service with
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
// Set an error handler on the middleware: ulule's default one panics when an engine
// fails. [Store] says what differs from ulule's own stores.
package ululelimit
