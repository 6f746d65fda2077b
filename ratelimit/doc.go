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
//
// # Words
//
//   - A subject is a name that usage is counted for, such as "user:ann".
//   - A caller is the client that sends a request: its subject, its plan, and further charges.
//   - A plan has quotas and a penalty. A quota allows so many units in each of its windows.
//   - A window is a span of time in which usage adds up. When it ends, its usage is forgotten.
//   - A charge adds the cost of a request, in units, to the windows of a subject.
//   - A request is denied if its subject is limited, banned or suspended. It is then charged
//     nothing.
//   - Units are given back, or refunded, when a charge turns out to cost less, or nothing.
//   - A strike is a limited request after the grace of the penalty. Too many start a ban.
//   - A ban denies all requests of a subject until it ends.
package ratelimit
