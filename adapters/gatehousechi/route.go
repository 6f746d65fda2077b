package gatehousechi

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// Route is a middleware that gives the request the whole route of chi as its Pattern once
// it was served, for middleware.AccessLog, middleware.Recover and others that are
// further out. chi itself sets the Pattern on the request that the router gets, which
// those do not see if a middleware in between copies the request, as
// http.Request.WithContext does: authentication, or chi's Timeout and WithValue. If a
// mounted router has such a middleware, the Pattern is that of the mount, such as /v1/*.
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
