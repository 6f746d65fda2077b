package api

import (
	"net/http"
	"strings"
)

// literals are the operations with a path without wildcards, which need no ServeMux: a
// ServeMux is asked for the route of a request, and then twice more to serve it.
type literals map[literalKey]*literal

type literalKey struct{ method, path string }

// A literal is what ServeMux finds for a request.
type literal struct {
	route   route
	pattern string // with the method, as in [http.Request.Pattern]
	handler http.Handler
}

// add adds an operation. As in ServeMux, GET is also for HEAD.
func (l literals) add(method, path string, h http.Handler) {
	if strings.Contains(path, "{") {
		return
	}
	pattern := method + " " + path
	found := &literal{pattern: pattern, handler: h, route: route{pattern: path, usage: pattern == usagePattern}}
	found.route.literal = found
	l[literalKey{method, path}] = found
	if method == http.MethodGet {
		l[literalKey{http.MethodHead, path}] = found
	}
}

// find returns the operation of a request, or nil for ServeMux to find it. A path that
// was escaped in an unusual way has a RawPath.
func (l literals) find(r *http.Request) *literal {
	if r.URL.RawPath != "" {
		return nil
	}
	return l[literalKey{r.Method, r.URL.Path}]
}

// orLiteral returns a handler that serves the requests of literals, and passes the
// others on to mux.
func orLiteral(mux http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l := requestInfoOf(r.Context()).route.literal; l != nil {
			r.Pattern = l.pattern // as ServeMux does
			l.handler.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
