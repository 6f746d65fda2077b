// Package failover puts a time budget, a circuit breaker and a fallback in front of a
// shared engine, the primary, such as the one of ratelimit/redislimit:
//
//	limiter, err := failover.New(primary, failover.Options{Local: embedded})
//	...
//	defer limiter.Close()
//
// Each call, to decide or to settle, waits for the primary for at most the budget, 50ms by
// default. If the primary fails, the local engine decides. After ten failures in a row, or 32
// among the last 64 calls, the circuit opens. Then no request calls the primary, and a probe in
// the background finds out when it is back. What the local engine admits is kept in a journal
// until it is charged to the primary, that is merged:
//
//	primary  answers  | fails                               | answers
//	circuit  closed . . . . . . . . . | open    probe  probe  probe | closed . . .
//	decides  primary  | local engine, | local engine, immediately   | primary
//	                  | after budget  |                             |
//	journal  empty    | fills . . . . . . . . . . . . . . . . . . . | is merged, empty
//
// So each process keeps the limits and bans, within the bounds that [Options] states. Without a
// local engine Take returns an error that wraps [ratelimit.ErrUnavailable], and FailOpen of the
// middleware decides: 503, or the request is admitted and not counted.
//
// # The primary
//
// The primary runs on the goroutine of the caller, and must return when its context ends. The
// engine of ratelimit/redislimit does, and refunds what it charged after the deadline. Engines
// that call go-redis directly, such as ratelimit/redisrate and ratelimit/ululelimit, need a
// client with ContextTimeoutEnabled. A request that the primary charges after the budget, and
// does not refund, is charged twice if the local engine admits it.
//
// An error that wraps [ratelimit.ErrInvalid] is not a failure of the primary, and the caller always
// gets it. The end of the caller's context is not a failure either. When ratelimit/redislimit says
// that a request fails because of its subject alone, or of one master of a cluster, the local
// engine decides that request. The circuit stays closed for the others. A panic of the primary
// while it is probed or charged from the journal is a failure; any other panic reaches the caller.
package failover
