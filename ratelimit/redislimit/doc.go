// Package redislimit is a rate limiter that counts in Redis. All processes that use
// the same Redis admit exactly the limit together, and share bans:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	limiter, err := redislimit.New(client, redislimit.Options{})
//	...
//	d, err := limiter.Take(ctx, "alice", plan, 1)
//
// A decision, also about several subjects ([Limiter.TakeAll]), is one call of a Lua
// script, and agrees with the embedded engine, ratelimit/memory. The engine works with
// Redis 7: one server, a master behind sentinels, a cluster, or the servers of a ring.
//
// [New] says how to set up the client and the server, and [Limiter] what an error
// means and which calls are sent again.
//
// # Throughput
//
// A call that finds no batch in flight is sent at once. Calls that come meanwhile are
// sent together in the next batch. In a batch, up to 64 subjects that take the same
// cost under the same *Plan share one call of the script (in a cluster: those with one
// hash tag), and all requests of one subject, or with the same charges, share one
// decision, in the order of their arrival. Groups of charges share calls too, whatever
// their plans, up to 64 charges a call; a group of two takes less time than two calls of
// Take. In a cluster each master has its own batches: a master that does not answer does
// not delay the subjects of the others. A denial costs the server less than twice as much
// as an admission, and so does a smooth quota; beside a calendar quota, or in a group of
// charges, a smooth quota costs about five times as much.
//
// A call with context.Background is sent on the goroutine of its caller. A call with a
// context that can end needs another goroutine, which costs from one to some ten
// microseconds.
//
// # Clock
//
// Time is the clock of the Redis server, to the microsecond. If it steps back, no
// quota is granted twice: windows that now lie in the future go on, at most one window
// ahead. A key outlives what it holds by five seconds; the clocks of replicas that may
// take over should not differ by more.
//
// That holds for calendar windows too. Redis knows no time zones: the process sends when
// the windows around its own time begin. If the two clocks are windows apart, it learns
// the server's time from the answer, and sends the call again.
//
// # Durability
//
// Redis replicates asynchronously: a replica that takes over may not know the last
// charges and bans, and a server without persistence forgets all of them at a restart.
// Both can only admit too much. Every key expires; a subject with two quotas and a
// name of 45 bytes takes 195 bytes of memory, and 225 once it was limited.
//
// # Versions
//
// Processes with different versions of this package can use the same Redis. Each calls its
// own script, and they share usage and bans as long as both store the same format. A
// version with another format uses keys of other names under the same prefix, and its
// release notes say so: usage and bans then begin anew, and the two versions count apart
// as long as both run. A version from before smooth quotas keeps what they have counted
// as windows of another plan, and gives back 2⁻³² seconds of it with each unit that it
// charges: so upgrade all processes before a plan has a smooth quota or a calendar window.
package redislimit
