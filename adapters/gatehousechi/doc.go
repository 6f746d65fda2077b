// Package gatehousechi answers 404 and 405 of a chi router in the envelope of package
// apierror, with the right Allow, and names the route in the access log:
//
//	r := chi.NewRouter()
//	r.Use(middleware.RequestID, middleware.AccessLog(logger), middleware.Recover(errs), gatehousechi.Route, limit)
//	gatehousechi.SetErrors(r, errs)
//	r.Get("/pets/{id}", getPet)
//
// Everything else of Gatehouse needs no adapter: middlewares of chi are those of
// net/http. Add them with r.Use: it runs them also for 404 and 405, so that these are
// counted and logged. Around the router, as in limit(r), they work too, but see no route.
//
// A function given to r.MethodNotAllowed cannot set Allow, which a 405 must have (RFC 9110
// section 15.5.6), because chi does not tell it the methods of the path.
package gatehousechi
