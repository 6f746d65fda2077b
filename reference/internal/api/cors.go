package api

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/rs/cors"

	"github.com/animalstore/gatehouse/middleware"
)

// allowOrigins returns the middleware for calls from web pages (the Fetch
// standard), or nil if there are no origins. It answers preflights, which have no
// key and are not charged, so it is placed before the gate. Preflights pass
// limitUncharged, so a flood of them is limited. Credentials mode is off: the page
// sends the key, not the browser.
func allowOrigins(origins []string, limitUncharged middleware.Middleware) middleware.Middleware {
	if len(origins) == 0 {
		return nil // package cors takes an empty list as all origins
	}
	allow := cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost},
		AllowedHeaders: []string{"Accept", "Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "X-Request-Id"},
		ExposedHeaders: []string{
			"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit", "RateLimit-Policy",
			"Retry-After", "Deprecation", "Sunset", "Link", "Location", "Idempotent-Replayed", "ETag", "Allow", "WWW-Authenticate", "X-Request-Id",
		},
		MaxAge: 600,
	}).Handler
	return func(next http.Handler) http.Handler {
		calls := allow(next)
		preflights := limitUncharged(calls)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isPreflight(r) {
				preflights.ServeHTTP(w, r)
				return
			}
			calls.ServeHTTP(w, r)
		})
	}
}

// isPreflight reports whether package cors answers a request by itself.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// checkOrigins refuses text that package cors would take for a pattern, which would
// allow pages of every host that matches.
func checkOrigins(origins []string) error {
	for i, origin := range origins {
		if origin == "" || strings.Contains(origin, "*") {
			return fmt.Errorf("api: Config.Origins[%d] must be an origin such as https://app.example, got %q", i, origin)
		}
	}
	return nil
}

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
