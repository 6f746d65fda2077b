package middleware

import "net/http"

// SecurityHeaders is a middleware that sets security headers for an API that programs
// call:
//
//	X-Content-Type-Options: nosniff
//	Content-Security-Policy: default-src 'none'; frame-ancestors 'none'
//	Referrer-Policy: no-referrer
//	Cache-Control: no-store
//	Strict-Transport-Security: max-age=31536000; includeSubDomains
//
// The last one is sent over TLS only (RFC 6797 section 7.2). If a proxy terminates TLS,
// the proxy must send it. With it browsers use HTTPS alone for a year, for this host and all
// its subdomains. If a subdomain is still served without TLS, let a middleware inside this one
// set the field to "max-age=31536000".
//
// They are set before the handler runs, and a handler may replace them: one that serves
// a page needs another policy, and one that serves public data another Cache-Control.
func SecurityHeaders(next http.Handler) http.Handler {
	// Made once and shared by all responses. Each slice has the capacity 1, so
	// that a handler that adds a value gets a slice of its own.
	nosniff, referrer, cache := []string{"nosniff"}, []string{"no-referrer"}, []string{"no-store"}
	policy := []string{"default-src 'none'; frame-ancestors 'none'"}
	transport := []string{"max-age=31536000; includeSubDomains"}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["X-Content-Type-Options"] = nosniff
		h["Content-Security-Policy"] = policy
		h["Referrer-Policy"] = referrer
		h["Cache-Control"] = cache
		if r.TLS != nil {
			h["Strict-Transport-Security"] = transport
		}
		next.ServeHTTP(w, r)
	})
}
