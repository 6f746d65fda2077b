// Package gatehouseconnect limits the calls of a Connect server, and authenticates them
// by bearer tokens, in the Connect, gRPC and gRPC-Web protocols:
//
//	limit, err := gatehouseconnect.New(engine, identify, gatehouseconnect.Options{})
//	path, handler := petsv1connect.NewPetsHandler(pets{}, connect.WithInterceptors(
//		gatehouseconnect.NewIdentify(auth), limit, gatehouseconnect.NewRequire(auth)))
//
// A refused call ends with an error:
//
//	limited or banned          resource_exhausted (429)  RetryInfo, ErrorInfo; if limited, QuotaFailure
//	suspended plan             permission_denied (403)   ErrorInfo
//	the engine cannot decide   unavailable (503)         RetryInfo, ErrorInfo; unless Options.FailOpen is set
//	cost above a whole quota   invalid_argument (400)    ErrorInfo
//	no subject, no plan        internal (500)            ErrorInfo; the log has the reason
//
// In parentheses is the HTTP status that unary calls of the Connect protocol get. All
// calls under a plan with quotas, served or refused, have X-RateLimit-Limit, -Remaining
// and -Reset in the header of the response, and those with RetryInfo also Retry-After. A
// client finds those of a refused call in the Meta of its error.
//
// Options.Deny replaces the first two errors. With Options.ChargeIf only some calls are
// charged, by their code: failed sign-ins alone, for instance.
//
// The middleware of package ratelimit around a Connect handler is not the same: clients
// see its 429 as unavailable, without RetryInfo, and its Options.Refund also gives back
// unary calls of the Connect protocol that end with 501 for an unknown compression, or with
// 504 at a deadline of the client. Authentication can be done in either place: NewRequire
// also works inside the middleware Identify of package bearer.
//
// A stream is charged once, when it opens, however many messages it carries;
// Options.Context is for services that settle its cost when it ends. That counts in the
// windows in which the stream opened, if they are still open. To limit the messages of
// long streams, call Take of the engine, or a ratelimit.Waiter, for each. The server
// has received and decoded the message of a unary call when it is counted. A message that
// cannot be decoded is answered before, and not counted; nor are requests that reach no
// handler, such as those of unknown methods. To count these too, put limit.ByIP around
// the mux.
//
// A client whose http.Client has a transport of package ratelimit/transport waits as the
// server asks, for unary calls of the Connect protocol. gRPC clients with a retry policy do
// not retry a refused call, as they do one of gatehousegrpc: connect-go sends the refusal
// in two blocks of headers (gRFC A6). They find the time to wait in RetryInfo.
//
// Browsers show pages of other origins only the fields that the middleware for CORS
// exposes: add Retry-After and the three of X-RateLimit to its list.
package gatehouseconnect
