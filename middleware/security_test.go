package middleware_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware"
)

func TestSecurityHeaders(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	h := middleware.SecurityHeaders(ok)
	want := http.Header{
		"X-Content-Type-Options":  {"nosniff"},
		"Content-Security-Policy": {"default-src 'none'; frame-ancestors 'none'"},
		"Referrer-Policy":         {"no-referrer"},
		"Cache-Control":           {"no-store"},
	}
	if diff := cmp.Diff(want, serve(h, r).Header); diff != "" {
		t.Errorf("header over plain HTTP (-want +got):\n%s", diff)
	}

	r.TLS = &tls.ConnectionState{}
	want.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
	if diff := cmp.Diff(want, serve(h, r).Header); diff != "" {
		t.Errorf("header over TLS (-want +got):\n%s", diff)
	}
}

// The values are shared by all responses. What a handler does to its own must
// not show in the next.
func TestSecurityHeadersAreNotSpoiled(t *testing.T) {
	add := true
	h := middleware.SecurityHeaders(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if add {
			for _, name := range []string{"X-Content-Type-Options", "Content-Security-Policy", "Referrer-Policy", "Cache-Control"} {
				w.Header().Add(name, "added")
			}
			w.Header().Set("Cache-Control", "public")
		}
	}))
	first := serve(h, httptest.NewRequest("GET", "/", nil))
	if got := first.Header["Cache-Control"]; !cmp.Equal(got, []string{"public"}) {
		t.Errorf("Cache-Control %q, want that of the handler alone", got)
	}
	add = false
	want := serve(middleware.SecurityHeaders(ok), httptest.NewRequest("GET", "/", nil))
	if diff := cmp.Diff(want.Header, serve(h, httptest.NewRequest("GET", "/", nil)).Header); diff != "" {
		t.Errorf("a handler's additions show in the response to another request (-want +got):\n%s", diff)
	}
}
