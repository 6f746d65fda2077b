// Package failover puts a time budget, a circuit breaker and a fallback in front of a
// shared engine, the primary, such as the one of ratelimit/redislimit:
//
//	limiter, err := failover.New(primary, failover.Options{Local: embedded})
//	...
//	defer limiter.Close()
//
// A request waits for the primary for at most the budget, 50ms by default. If the
// primary fails, the local engine decides. After ten failures in a row, or 32 among the
// last 64 calls, the circuit opens: no request calls the primary, and a probe in the
// background finds out when it is back. What the local engine admits is kept in a journal
// until it is charged to the primary, that is merged:
//
//	primary  answers  | fails                               | answers
//	circuit  closed . . . . . . . . . | open    probe  probe  probe | closed . . .
//	decides  primary  | local engine, | local engine, at once       | primary
//	                  | after budget  |                             |
//	journal  empty    | fills . . . . . . . . . . . . . . . . . . . | is merged, empty
//
// So each process keeps the limits and bans, see [Options], and its usage is merged
// later, except that of smooth quotas. Without a local engine Take returns an error instead,
// which wraps [ratelimit.ErrUnavailable], and FailOpen of the middleware decides: 503, or the
// request is admitted and not counted.
//
// An invalid call is an error in any case, and wraps [ratelimit.ErrInvalid].
//
// # The primary
//
// The primary must return when its context ends: it runs on the goroutine of the
// caller. The engine of ratelimit/redislimit does, and refunds what it charged after
// the deadline. An engine that calls go-redis directly, as those of
// ratelimit/redisrate and ratelimit/ululelimit do, needs a client with
// ContextTimeoutEnabled in its options. A request that the primary charges after the
// budget, and does not refund, is charged twice if the local engine admits it.
//
// If the context of the caller ends first, its error is returned, and is not a failure
// of the primary. Nor is an error that wraps ErrInvalid. When ratelimit/redislimit says
// that one master of a cluster does not answer, the local engine decides that request, and
// the circuit stays closed for the others. A panic of the primary in Adjust for the journal, or
// in a probe, is a failure; any other panic reaches the caller.
package failover
