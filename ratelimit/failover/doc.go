// Package failover puts a time budget, a circuit breaker and a fallback in front of a
// shared engine, the primary, such as the one of ratelimit/redislimit:
//
//	limiter, err := failover.New(primary, failover.FailLocal, failover.Options{Local: embedded})
//	...
//	defer limiter.Close()
//
// A request waits for the primary for at most the budget, 50ms by default. If the
// primary fails, the mode decides. After ten failures in a row, or 32 among the last 64
// calls, the circuit opens: no request calls the primary, and a probe in the background
// finds out when it is back. In mode FailLocal an outage looks like this:
//
//	primary  answers  | fails                               | answers
//	circuit  closed . . . . . . . . . | open    probe  probe  probe | closed . . .
//	decides  primary  | local engine, | local engine, at once       | primary
//	                  | after budget  |                             |
//	journal  empty    | fills . . . . . . . . . . . . . . . . . . . | is merged, empty
//
// The modes, one of which must be chosen:
//
//	mode        a request is   its usage is counted    promise
//	FailLocal   decided here   here, merged later      each process keeps the limits and bans
//	FailOpen    admitted       nowhere                 the outage denies no request
//	FailClosed  an error       nowhere                 no request is admitted uncounted
//
// An invalid call is an error in each mode, and wraps [ratelimit.ErrInvalid].
//
// # The primary
//
// The primary must return when its context ends: it runs on the goroutine of the
// caller. The engine of ratelimit/redislimit does, and refunds what it charged after
// the deadline. An engine that calls go-redis directly, as those of
// ratelimit/redisrate and ratelimit/ululelimit do, needs a client with
// ContextTimeoutEnabled in its options. A request that the primary charges after the
// budget, and does not refund, is charged twice in mode FailLocal.
//
// If the context of the caller ends first, its error is returned, and is not a failure
// of the primary. Nor is an error that wraps ErrInvalid. When ratelimit/redislimit says
// that one master of a cluster does not answer, the mode decides that request, and the
// circuit stays closed for the others. A panic of the primary in Adjust for the journal, or
// in a probe, is a failure; any other panic reaches the caller.
package failover
