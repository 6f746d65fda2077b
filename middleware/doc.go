// Package middleware holds the small parts that an HTTP API puts around its handlers. These are
// a request ID, an access log, recovery from panics, limits on the body and the request target,
// and security headers.
//
// A [Middleware] is a plain function, so these fit together with middlewares
// of any other package, and [Chain] puts them in order:
//
//	rs := &apierror.Responder{RequestID: middleware.RequestIDFrom}
//
//	handler := middleware.Chain(rs.Mux(mux),
//		middleware.RequestID, // first, so that everything inside can log it
//		middleware.AccessLog(logger),
//		rs.Recover,
//		middleware.SecurityHeaders,
//		middleware.TargetLimit(8<<10, rs),
//		middleware.BodyLimit(64<<10, rs),
//	)
//
// All of it is safe for concurrent use. Middlewares that refuse requests answer
// through an [apierror.Responder]; nil works.
//
// Of the packages below this one, bearer reads the credentials of the client, apikey
// verifies them, and clientip finds its address. Package limit has rate limits of one line
// each, inflight limits concurrent requests, jsonbody reads request bodies, and
// telemetry reports metrics and spans.
package middleware
