// Package gatehousechi answers 404 and 405 of a chi router in the envelope of package
// apierror, with the right Allow, and names the route in the access log:
//
//	r := chi.NewRouter()
//	r.Use(middleware.RequestID, middleware.AccessLog(logger), errs.Recover, gatehousechi.Route, limit)
//	gatehousechi.SetErrors(r, errs)
//	r.Get("/pets/{id}", getPet)
//
// Everything else of Gatehouse needs no adapter: middlewares of chi are middlewares of
// net/http. Add them with r.Use: it runs them also for 404 and 405, so that these are
// counted and logged. Around the router, as in limit(r), they work too, but see no route.
//
// A function given to r.MethodNotAllowed cannot set Allow, which a 405 must have (RFC 9110
// section 15.5.6), because chi does not tell it the methods of the path.
package gatehousechi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/animalstore/gatehouse/apierror"
)

var (
	notFound         = apierror.New(http.StatusNotFound, "not_found", "There is nothing at this path.")
	methodNotAllowed = apierror.New(http.StatusMethodNotAllowed, "method_not_allowed",
		"This method is not supported here. The Allow header lists the methods that are.")
)

// SetErrors makes the router, and all routers mounted below it that have no answers of
// their own, answer in the envelope
//
//   - 404 not_found if no route matches the path, and to every method that chi does not
//     know, such as PROPFIND: chi does not look for its path;
//   - 405 method_not_allowed if routes match the path but not the method. Allow lists
//     their methods in alphabetical order. HEAD is one of them only if it has a route:
//     chi does not serve HEAD by the route of GET, unless its GetHead is used.
//
// It may be called before or after routes are added. A nil Responder works.
func SetErrors(r chi.Router, rs *apierror.Responder) {
	r.NotFound(func(w http.ResponseWriter, r *http.Request) { rs.Respond(w, r, notFound) })
	r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		methods := allowed(r)
		if len(methods) == 0 {
			rs.Respond(w, r, notFound)
			return
		}
		w.Header().Set("Allow", strings.Join(methods, ", "))
		rs.Respond(w, r, methodNotAllowed)
	})
}

// empty is a router without a route for any path. In a request that was routed before
// without success, it tells in Allow which methods were found on the way: chi writes
// them only in its own answer.
var empty = func() *chi.Mux {
	r := chi.NewRouter()
	r.Get("/\x00", func(http.ResponseWriter, *http.Request) {})
	return r
}()

// allowed returns the methods of the routes that match the path of r.
func allowed(r *http.Request) []string {
	routing := chi.RouteContext(r.Context())
	if routing == nil {
		return nil
	}
	answer := probe{header: make(http.Header)}
	before := routing.RoutePath
	routing.RoutePath = "/"
	empty.ServeHTTP(answer, r)
	routing.RoutePath = before
	found := slices.DeleteFunc(answer.header["Allow"], func(name string) bool { return name == "" })
	slices.Sort(found)
	return found
}

// probe is a ResponseWriter that keeps the header and drops the rest.
type probe struct{ header http.Header }

func (p probe) Header() http.Header         { return p.header }
func (p probe) WriteHeader(int)             {}
func (p probe) Write(b []byte) (int, error) { return len(b), nil }

// Route is a middleware that gives the request the whole route of chi as its Pattern once it
// was served. That is for middleware.AccessLog, [apierror.Responder.Recover] and others that
// are further out. chi itself sets the Pattern on the request that the router gets. The outer
// middlewares do not see it if a middleware in between copies the request, as
// http.Request.WithContext does: authentication, or chi's Timeout and WithValue. If a mounted
// router has such a middleware, the Pattern names the mount, such as /v1/*.
//
// Add it with Use, after AccessLog and Recover and before all that may copy.
func Route(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if routing := chi.RouteContext(r.Context()); routing != nil {
				if pattern := routing.RoutePattern(); pattern != "" {
					r.Pattern = pattern
				}
			}
		}()
		next.ServeHTTP(w, r)
	})
}
