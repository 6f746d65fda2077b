// Package redislimit limits in Redis, so that all processes that use the same
// Redis admit exactly the limit together, and share bans. Every decision is one
// call of one Lua script:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	limiter, err := redislimit.New(client, redislimit.Options{})
//	...
//	d, err := limiter.Take(ctx, "alice", plan, 1)
//
// The semantics are those of the embedded engine, ratelimit/memory: all quotas or
// none are charged, a denial charges nothing, and windows, strikes and bans are
// counted alike. It works with Redis 7: one server, a master behind sentinels, a
// cluster, or the servers of a ring.
//
// # Throughput
//
// A call that finds nothing under way is sent at once. Calls that come while a
// batch is under way are collected, and sent together when it is back. In a batch,
// subjects that ask for one plan (one *Plan: plans are not compared by what they
// say) and cost share one call of the script, up to 64 of them (in a cluster: those
// with one hash tag), and concurrent requests of one subject share one decision,
// which grants as many as fit in the order of their arrival and strikes for each
// of the others. Refunds are shared in the same way. No call of the script names a
// key twice. If a round trip
// takes longer, one more batch can be under way for each 250 microseconds of it, up
// to Options.MaxInFlight; the client's pool should have at least as many connections. In
// a cluster all of this holds for each master on its own: one that does not answer
// does not delay the subjects of the others.
//
// A request that is limited, or that arrives during a ban, costs the server about as
// much as one that is admitted (BenchmarkServer). The request that starts a ban takes
// a second round trip, in which the ban is also entered into the index of bans.
//
// A call with a context that cannot end (context.Background) carries its batch
// itself. Any other call has a goroutine carry it, because the call has to return
// when its context ends and the client of Redis cannot be interrupted. That takes a
// microsecond on one processor, and up to some ten where the goroutine wakes an idle
// processor.
//
// # Failure
//
// An error that wraps [ratelimit.ErrUnavailable], or is the context's, says that
// the caller got no decision, and so has not admitted the request. It may have been
// charged all the same, if the reply was lost: once at most, since no call whose
// outcome is unknown is sent a second time, whatever MaxRetries says in the options
// of the client. A caller whose context ended before the call was sent is not
// charged. If its deadline passed after that, the charge is refunded when the answer
// comes; if its context was cancelled, the charge is not refunded. A call of Charge
// is sent again, and takes effect once.
//
// Some errors say that nothing was done, and lead to a second attempt, which callers
// do not notice: a server that does not know the script (after SCRIPT FLUSH, a restart,
// or a failover) is sent its text, a server in cluster mode behind a client of one
// server is asked for one slot at a time, and the client of a cluster follows the
// slots. While a cluster moves a slot, it refuses commands about keys that are on
// both sides (TRYAGAIN): the engine then sends the subjects of the command again one
// by one. A request that would start a ban is limited instead, and the first one after
// the slot has moved starts it. A call of Ban, Unban, Reset or Charge, which needs a
// second key, is sent again after pauses until the slot has moved. The engine gives up
// when no caller waits any more, or after five seconds.
//
// A key that holds something that the engine did not write is an error, which wraps
// [ratelimit.ErrUnavailable] and names the key, for every operation on that subject.
// The key stays as it is.
//
// Redis replicates asynchronously. A replica that takes over does not know the
// charges and bans of the last moment, and a server without persistence forgets all
// of them at a restart. Both can only admit too much. Memory that is full
// must refuse to write, not evict (maxmemory-policy noeviction): a key that is
// evicted is a quota granted twice, or a ban forgotten. The engine asks for the
// policy (INFO) when a server has answered for the first time, and logs a warning if
// keys can be evicted.
//
// # Clock
//
// Time is the Redis server's (TIME), to the microsecond; clocks of other machines
// do not matter. If it steps back no quota is granted twice: windows that now lie in
// the future go on, at most one window ahead, and a key expires five
// seconds after what it holds has ended. The clocks of replicas that may take over
// should not differ by more.
//
// # Keys
//
//	gatehouse{2f1}:alice    the usage, strikes and ban of the subject alice
//	gatehouse{2f1}#9b3c…    the same, of a subject of more than 128 bytes: SHA-256
//	gatehouse{2f1}          a sorted set: subjects of this tag with a ban, by its end
//	gatehouse{2f1}!5e0a…    empty: a charge of a subject of this tag was made; a digest
//	                        of the subject and the mark
//
// The tag is one of 1024, and follows from the subject, so that a subject and the
// index that it may be in share a slot of a cluster, and Bans looks into 1024
// places at most. The prefix is Options.Prefix. A value is binary, 12 bytes for
// each window in use and 21 more for a subject with strikes or a ban; limit.lua
// says what is in it. With two quotas and a name of 45 bytes a subject takes 195
// bytes of the server's memory in total, and 225 once it was limited.
//
// Every key expires: a subject's five seconds after its last window, ban and step
// of forgiveness have ended, an index one hour after its last ban, and the mark of
// a charge five seconds after the last window in which the charge counts, or a minute
// after the charge if that is later. A charge of a day's usage leaves its mark until
// the end of the day.
//
// # Client
//
// The timeouts of the client bound how long a call without a deadline waits:
// set redis.Options.ReadTimeout and DialTimeout to what a request can wait, some
// hundred milliseconds, DialerRetries to 1, and MaxRetries to -1, so that the client
// does not pause and connect again. A call may first wait for a batch under way, and
// so for two timeouts or more. Package
// ratelimit/failover puts a budget and a circuit breaker in front, and lets another
// engine take over.
//
// When as many attempts to connect have failed as the pool has connections, the
// client makes one a second, and answers every call with the last error meanwhile:
// a server that is back may be noticed a second later.
//
// With the default prefix, the engine works as a Redis user with this rule (ACL), on
// one server and in a cluster:
//
//	ACL SETUSER gatehouse on >PASSWORD resetchannels ~gatehouse{*
//		+evalsha +eval +time +mget +set +del +exists
//		+zadd +zrem +zremrangebyscore +zrevrange +zscan +expireat
//		+cluster|slots +asking +ping
//
// The client of a cluster needs CLUSTER SLOTS and ASKING, and the client of a ring
// needs PING. With +info the engine can warn of a server that evicts keys.
package redislimit
