// Package inflight limits how many requests run at the same time, for each subject, such as
// an owner or a network, and in the whole process.
//
//	process, err := inflight.NewProcess(500, inflight.Options{})
//	...
//	perOwner, err := inflight.New(4, func(r *http.Request) (inflight.Caller, error) {
//		return inflight.Caller{Subject: "user:" + userOf(r)}, nil
//	}, inflight.Options{})
//	...
//	handler = process.Middleware(auth.Identify(perOwner.Middleware(handler)))
//
// A rate limit does not do this: if a client may send 60 requests per minute, and each
// takes a minute, all 60 run together. A request beyond the limit is answered with
//
//	code                          status  by
//	too_many_concurrent_requests  429     New
//	overloaded                    503     NewProcess
//
// and Retry-After. With [Options.Queue] it first waits for a short time. If its client
// disconnects meanwhile, logs and metrics see a 499.
//
// A request counts from the call of the middleware until the handler inside it returns,
// panics or ends its goroutine:
//
//   - If the client disconnects or resets the stream (HTTP/2), the request counts until
//     the handler notices and returns. A client cannot exceed its limit by resetting
//     requests.
//   - A hijacked connection counts until the handler returns. If another goroutine
//     uses the connection after that, it is not counted.
//   - [http.TimeoutHandler] returns while the handler inside it still runs. Place it
//     outside the limiter.
//   - A client may receive its whole response just before the handler returns. If it
//     then sends its next request immediately, that request can be refused. A queue of one
//     request prevents this.
//
// The handler gets the same ResponseWriter and request as the middleware. Place a limit
// on the process outside everything that takes time. Place a limit on subjects after
// authentication: inside the middleware of package limit, refused requests are
// charged to the caller's plan; outside, they are not, and have no X-RateLimit headers.
//
// An overloaded process can refuse some clients before others, such as free users before
// paying ones. Put a second, lower limit on the process around the first, for the former
// alone: see the example of [NewProcess].
//
// Each process counts for itself: on n servers, a subject can have n times as many
// requests in progress. With [Options.Shared] and package ratelimit/redislimit/slots,
// processes share a limit in Redis. A subject takes memory only while one of its requests
// runs.
package inflight
