// Package transport keeps an HTTP client inside the limits of the services that it
// calls:
//
//	limits, err := transport.New(transport.Options{})
//	...
//	client := &http.Client{Transport: limits}
//
// After a 429 with "Retry-After: 17" the client sends nothing for 17 seconds, and then
// the request again:
//
//	the server answers                            the request, and others of its key
//	429, 403 or 503 with Retry-After              wait that long
//	429 or 403 without it, a quota exhausted      wait until its reset
//	429 without it, some left of each quota       wait a minute
//	any other 429                                 wait 1s, 2s, 4s, ... up to a minute
//	any status, a quota exhausted                 the next ones wait until its reset
//	a ban, or a wait longer than Options.MaxWait  fail at once with a LimitError
//
// So a caller never sees a 429: it gets the response to a later attempt, or a
// [LimitError], which says until when to wait. A request that would outlast the deadline
// of its context also fails at once.
//
// Quotas are read from X-RateLimit-Remaining and -Reset, and from RateLimit of
// draft-ietf-httpapi-ratelimit-headers-11. Reset is a Unix time, as Gatehouse and GitHub
// send it, also in milliseconds, or a number of seconds. Times are compared with the Date
// of the response, so that the clock of this process need not be right.
//
// All requests of a key, by default a host and its credentials, share one pause. To
// each wait a random time is added, so that many processes do not return at the same
// instant. During a pause of an hour, one request every 15 minutes is sent to see
// whether it still holds.
//
// # What is sent again
//
// A request that was refused by a limit was not processed, and is sent again whatever
// its method, if its body can be: http.NewRequest sets GetBody for the usual readers.
// A request answered with 503 is sent again if its method is idempotent or it has an
// Idempotency-Key; otherwise the caller gets the 503. Other failures are not retried.
//
// # A plan of the client's own
//
// With Options.Plan the client stays within a plan before it sends anything:
//
//	limits, err := transport.New(transport.Options{
//		Plan:    ratelimit.MustPlan("github", ratelimit.Penalty{}, ratelimit.PerHour(5000)),
//		Limiter: engine, // of ratelimit/memory, or a shared one for several processes
//	})
//
// # Deprecations
//
// Deprecation and Sunset fields in responses are reported once each, in the log or to
// Options.OnDeprecated.
package transport
