package api

import (
	"net/http"
	"strings"
)

// staticRoutes are the operations whose paths have no wildcards. A request finds them
// without ServeMux, which would be asked once for the route and twice more to serve it.
type staticRoutes map[staticKey]*staticRoute

type staticKey struct{ method, path string }

// A staticRoute is what ServeMux finds for a request.
type staticRoute struct {
	route   route
	pattern string // with the method, as in [http.Request.Pattern]
	handler http.Handler
}

// add adds an operation. As in ServeMux, GET is also for HEAD.
func (s staticRoutes) add(method, path string, h http.Handler) {
	if strings.Contains(path, "{") {
		return
	}
	pattern := method + " " + path
	found := &staticRoute{pattern: pattern, handler: h, route: route{pattern: path, usage: pattern == usagePattern}}
	found.route.static = found
	s[staticKey{method, path}] = found
	if method == http.MethodGet {
		s[staticKey{http.MethodHead, path}] = found
	}
}

// find returns the operation of a request, or nil for ServeMux to find it. A path that
// was escaped in an unusual way has a RawPath.
func (s staticRoutes) find(r *http.Request) *staticRoute {
	if r.URL.RawPath != "" {
		return nil
	}
	return s[staticKey{r.Method, r.URL.Path}]
}

// staticOr returns a handler that serves requests with a static route, and passes the
// others on to mux.
func staticOr(mux http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s := requestInfoOf(r.Context()).route.static; s != nil {
			r.Pattern = s.pattern // as ServeMux does
			s.handler.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
