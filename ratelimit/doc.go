// Package ratelimit says how much each caller of a service may use, and tells
// the callers. It holds the vocabulary that all engines share (Quota, Plan,
// Penalty, Decision, Limiter), the header fields, and the net/http middleware:
//
//	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(),
//		ratelimit.PerMinute(60), ratelimit.PerDay(1000))
//
//	engine, err := memory.New(memory.Options{})
//	...
//	limit, err := ratelimit.New(engine, func(r *http.Request) ratelimit.Caller {
//		return ratelimit.Caller{Subject: "owner:" + ownerOf(r), Plan: free}
//	}, ratelimit.Options{})
//	...
//	http.ListenAndServe(addr, limit(api))
//
// # One decision
//
// [Limiter.Take] decides a request against every quota of its plan and against
// a ban at once: it is charged to all quotas or to none, and a request that is
// denied is charged to none. N concurrent requests against a limit of L admit
// exactly L.
//
// Windows are fixed and aligned to the UTC clock. Up to twice a limit can
// therefore pass within one window's length, across its boundary; a second quota
// with a shorter window bounds such a burst.
//
// Engines count usage, and usage belongs to a subject and a window, never to a
// plan. A window opens with the first request that needs it. From then on until
// it ends it counts all that the subject uses under any plan, so that a change
// of plan never grants a second quota. Up to eight windows of a subject are
// counted at once.
//
// # Header fields
//
// X-RateLimit-Limit, -Remaining and -Reset describe one quota, the applicable
// one: of an admitted request the one with the least remaining, and on a tie the
// later reset; of a denied one, of those that refuse it, the one with the latest
// reset. Reset is in Unix seconds. Retry-After is in seconds, rounded up; a
// client that waits that long is admitted, unless something else uses the quota
// meanwhile.
//
// # Bans
//
// A subject that keeps sending requests after it was limited collects strikes,
// and in the end a ban: see [Penalty]. Strikes decay: under the default penalty a
// client that doubles its pauses is never banned. A client can tell a ban from a
// limit by the code in the body, api_key_banned or client_banned. During a ban
// Remaining is 0, and Retry-After covers the rest of the ban.
//
// # Clocks that jump
//
// A clock that steps back grants nothing twice: a window that now lies in the
// future goes on, though never more than one window ahead. The next request of a
// banned subject cuts its ban to the length that it had when it began, counted
// from then.
//
// # Engines
//
// Package memory is exact, bounded and has no dependencies: the one to start
// with. Package redislimit decides alike in Redis, for any number of processes,
// and package failover goes in front of it. Packages redisrate and ululelimit
// adapt other libraries, and say what these cannot do. Package
// ratelimittest has the tests that every engine passes, for engines written
// elsewhere as well.
package ratelimit
