// Package gatehousegin runs net/http middlewares inside Gin:
//
//	router := gin.New()
//	gatehousegin.SetErrors(router, errs) // 404 and 405 in the envelope
//	router.Use(gatehousegin.Wrap(
//		middleware.RequestID, middleware.AccessLog(logger), middleware.Recover(errs), limit,
//	), gatehousegin.ErrorHandler(errs)) // errors of c.Error too
//
// Gin has no function for this. Services use one of these instead, and lose something:
//
//   - gin.WrapH(limit(empty)) runs the middleware before the handlers, not around them:
//     a request that was answered with 429 is served as well, and neither a refund, a
//     recovery nor an access log sees what the handlers do;
//   - a function that calls c.Next inside the middleware gives the handlers the
//     ResponseWriter of Gin and not that of the middleware, which then takes every
//     response for an empty 200: a 5xx is not refunded, and the log has the wrong status
//     and no bytes. If it does not abort, a refused request is served as well. After a
//     recovered panic Gin calls the next handler of the chain.
//
// With Wrap the handlers write to the ResponseWriter that the middleware passes on, and
// get its request. A middleware that refuses a request, or recovers from a panic, aborts
// the chain. The pattern of the request is the route of Gin, such as /pets/:id, and its
// path values are the parameters. What middlewares put into the context, such as the
// principal of package bearer, is in c.Request.Context(), and in c only if
// Engine.ContextWithFallback is set.
//
// Gin's own 404 and 405 are written outside all middlewares: the log has their status,
// but counts no bytes; SetErrors replaces them. gin.Recovery, unlike [middleware.Recover],
// also recovers from [http.ErrAbortHandler], so that a response that was broken off
// looks complete to the client.
package gatehousegin
