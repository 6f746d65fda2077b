// Package gatehouseecho runs net/http middlewares inside Echo:
//
//	e := echo.New()
//	e.HTTPErrorHandler = gatehouseecho.ErrorHandler(errs) // all errors in the envelope
//	e.Use(gatehouseecho.Wrap(
//		middleware.RequestID, middleware.AccessLog(logger), middleware.Recover(errs), limit,
//	))
//
// It is for Echo v5, the current version. Echo v4 gets only security fixes from 2027 on.
//
// echo.WrapMiddleware gives handlers the ResponseWriter and the request of the
// middleware as well, but
//
//   - an error that a handler returns is answered outside the middleware, which takes
//     the response for an empty 200: it is not refunded, and the log has the wrong
//     status and no bytes;
//   - after a panic that the middleware recovers from, a logger of Echo further out sees
//     a 200 instead of the 500.
//
// Wrap calls the error handler of Echo inside the middleware. The error is returned as
// well, for middlewares of Echo further out, as RequestLogger does it: an error
// handler of your own must return at once if the response is committed. Middlewares that
// change errors belong inside Wrap. The pattern of the request is the route of Echo,
// such as /pets/:id, and its path values are the parameters.
package gatehouseecho
