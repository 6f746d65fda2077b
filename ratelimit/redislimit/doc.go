// Package redislimit is a rate limiter that counts in Redis. All processes that use
// the same Redis admit exactly the limit together, and share bans:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	limiter, err := redislimit.New(client, redislimit.Options{})
//	...
//	d, err := limiter.Take(ctx, "alice", plan, 1)
//
// A decision, also about several subjects ([Limiter.TakeAll]), is one call of a Lua
// script, and agrees with the embedded engine, ratelimit/memory. The engine works with Redis 7
// and 8 and Valkey 8 and 9: one server, a master behind sentinels, or a cluster. [New] says how to
// set up client and server, and [Limiter] what an error means and which calls are sent again.
//
// # Throughput
//
// A call that finds no batch in flight is sent immediately. Calls that come meanwhile are sent
// together in the next batch. In a batch, up to 64 subjects that take the same cost under the
// same *Plan share one call of the script (in a cluster: those with one hash tag). All requests
// of one subject, or with the same charges, are decided together, in the order of their
// arrival. The charges of one TakeAll, a group, share a call with other groups, whatever their
// plans, up to 64 charges a call. A group of two takes less time than two calls of Take. In a
// cluster each master has its own batches.
//
// A denial costs the server less than twice as much as an admission, and a smooth quota
// less than twice as much as one with windows, also in a group.
//
// A call with context.Background is sent on its caller's goroutine. One with a context
// that can end needs another, at a cost of one to some ten microseconds.
//
// # Clock
//
// Time is the clock of the Redis server, to the microsecond. A step back over the end of a
// window may grant its limit again. What has ended is forgotten at the next call about its
// subject, or when the key expires, five seconds later. The clocks of replicas that may take
// over should not differ by more. Redis knows no time zones, so the process sends when calendar
// windows around its own time begin. If the clocks are windows apart, it learns the server's
// time, and repeats the call.
//
// # Durability
//
// What Redis loses can only admit too much: each subject has its whole limit again. Without
// persistence a restart loses all. Set appendonly yes: with appendfsync everysec a crash then
// loses up to about two seconds, with always nothing. Set maxmemory-policy noeviction ([New]).
// A replica that takes over may not know the last charges and bans, thousands after SENTINEL
// FAILOVER of a busy master. Run CLIENT PAUSE 30000 WRITE before, and let the replica catch up.
// A key with two quotas and a name of 45 bytes takes 195 bytes, 225 once limited, up to 1,400
// more after refunds under a smooth quota, and expires.
//
// # Versions
//
// Processes with different versions of this package can use the same Redis. Each calls its
// own script, and they share usage and bans if both store the same format. A version with
// another format, as its release notes then say, uses keys of other names under the same
// prefix: usage and bans begin anew, and both versions count apart.
package redislimit
