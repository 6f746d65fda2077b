package api

import (
	"net/http"

	"github.com/rs/cors"

	"github.com/animalstore/gatehouse/middleware"
)

// allowOrigins returns the middleware for calls from web pages (the Fetch
// standard), or nil if there are no origins. It is placed before the gate, because it
// answers preflights, which have no key and are not charged. They pass limitUncharged, so
// a flood of them is limited. Credentials mode is off: the page sends the key, not the
// browser.
func allowOrigins(origins []string, limitUncharged middleware.Middleware) middleware.Middleware {
	if len(origins) == 0 {
		return nil // package cors takes an empty list as all origins
	}
	allow := cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost},
		AllowedHeaders: []string{"Accept", "Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "X-Request-Id"},
		ExposedHeaders: []string{
			"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Banned", "RateLimit", "RateLimit-Policy",
			"Retry-After", "Deprecation", "Sunset", "Link", "Location", "Idempotent-Replayed", "ETag", "Allow", "WWW-Authenticate", "X-Request-Id",
		},
		MaxAge: 600,
	}).Handler
	return func(next http.Handler) http.Handler {
		calls := allow(next)
		return choose(isPreflight, limitUncharged(calls), calls)
	}
}

// isPreflight reports whether package cors answers a request by itself.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}
