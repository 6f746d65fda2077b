// Package gatehousegrpc limits the calls of a gRPC server, and authenticates them by
// bearer tokens:
//
//	limitUnary, err := gatehousegrpc.Unary(engine, identify, gatehousegrpc.Options{})
//	limitStream, err := gatehousegrpc.Stream(engine, identify, gatehousegrpc.Options{})
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(gatehousegrpc.UnaryIdentify(auth), limitUnary, gatehousegrpc.UnaryRequire(auth)),
//		grpc.ChainStreamInterceptor(gatehousegrpc.StreamIdentify(auth), limitStream, gatehousegrpc.StreamRequire(auth)))
//
// A refused call ends with a status:
//
//	limited or banned          RESOURCE_EXHAUSTED  RetryInfo, ErrorInfo; if limited, QuotaFailure
//	suspended plan             PERMISSION_DENIED   ErrorInfo
//	the engine cannot decide   UNAVAILABLE         RetryInfo, ErrorInfo; unless Options.FailOpen is set
//	cost above a whole quota   INVALID_ARGUMENT    ErrorInfo
//	no subject, no plan        INTERNAL            ErrorInfo; the log has the reason
//
// Options.Deny replaces the first two. With Options.ChargeIf only some calls are charged,
// by their status: failed sign-ins alone, for instance.
//
// Metadata has the fields that HTTP has, x-ratelimit-limit, -remaining and -reset, and
// retry-after. They are in the header of calls that succeed, and in the trailer of calls
// that fail. A failed call therefore stays a single block of headers, which clients
// with a retry policy need in order to retry it (gRFC A6). Such a client also gets
// grpc-retry-pushback-ms: it waits exactly as long as RetryInfo says, up to a minute.
// If the wait is longer, it does not retry. If the deadline of the call comes first, the
// call ends with DEADLINE_EXCEEDED. Concurrent calls of a client compete, and can run out
// of attempts: in the example of a client they wait for their turn before they are sent.
//
// A stream is charged once, when it opens, however many messages it carries;
// Options.Context is for services that settle its cost when it ends. That counts in the
// windows in which the stream opened, if they are still open. To limit the messages of
// long streams, call Take of the engine, or a ratelimit.Waiter, for each. The server
// has received and decoded the message of a unary call when it is counted. Messages that
// cannot be decoded, and calls of unknown methods, reach no interceptor and are not
// counted.
package gatehousegrpc
