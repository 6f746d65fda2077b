package middleware_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware"
)

func TestRequestID(t *testing.T) {
	long := strings.Repeat("x", 64)
	tests := []struct {
		name     string
		incoming []string
		kept     bool
	}{
		{"none", nil, false},
		{"letters, digits, punctuation", []string{"Az09._-"}, true},
		{"one character", []string{"a"}, true},
		{"64 characters", []string{long}, true},
		{"65 characters", []string{long + "x"}, false},
		{"empty", []string{""}, false},
		{"two lines", []string{"a", "b"}, false},
		{"two equal lines", []string{"a", "a"}, false},
		{"space", []string{"a b"}, false},
		{"line feed", []string{"a\nb"}, false},
		{"line feed at the end", []string{"a\n"}, false},
		{"other punctuation", []string{"a/b"}, false},
		{"quotation mark", []string{`a"b`}, false},
		{"non-ASCII", []string{"é"}, false},
	}
	seen := map[string]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var inContext string
			h := middleware.RequestID(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inContext = middleware.RequestIDFrom(r.Context())
			}))
			r := httptest.NewRequest("GET", "/", nil)
			for _, line := range tt.incoming {
				r.Header.Add("X-Request-ID", line)
			}
			resp := serve(h, r)

			lines := resp.Header.Values("X-Request-ID")
			if len(lines) != 1 || lines[0] != inContext {
				t.Errorf("response has X-Request-ID %q, want the one in the context, %q", lines, inContext)
			}
			if tt.kept && inContext != tt.incoming[0] {
				t.Errorf("ID %q, want the incoming %q", inContext, tt.incoming[0])
			}
			if seen[inContext] {
				t.Errorf("ID %q is that of an earlier request", inContext)
			}
			seen[inContext] = true
			if !tt.kept && !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(inContext) {
				t.Errorf("ID %q for incoming %q, want a new one of 32 hexadecimal digits", inContext, tt.incoming)
			}
		})
	}
}

func TestContextWithoutRequestID(t *testing.T) {
	if got := middleware.RequestIDFrom(context.Background()); got != "" {
		t.Errorf("ID %q in a context without one, want none", got)
	}
}

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

func TestTargetLimit(t *testing.T) {
	h := middleware.TargetLimit(100, nil)(ok)
	for _, tt := range []struct {
		name, target string
		refused      bool
	}{
		{"path at the limit", "/" + strings.Repeat("a", 99), false},
		{"path over the limit", "/" + strings.Repeat("a", 100), true},
		{"query counts", "/?" + strings.Repeat("a", 99), true},
		{"bytes as sent count", "/" + strings.Repeat("%61", 34), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp := serve(h, httptest.NewRequest("GET", tt.target, nil))
			if !tt.refused && resp.StatusCode != 200 {
				t.Errorf("target of %d bytes is answered %d, want 200", len(tt.target), resp.StatusCode)
			}
			if tt.refused && (resp.StatusCode != 414 || code(t, resp) != "uri_too_long") {
				t.Errorf("target of %d bytes is answered %d, want 414 uri_too_long", len(tt.target), resp.StatusCode)
			}
		})
	}
}

func TestSharedHeadersDoNotAllocate(t *testing.T) {
	h := middleware.Chain(ok, middleware.SecurityHeaders, middleware.TargetLimit(8<<10, nil), middleware.BodyLimit(64<<10, nil))
	w, r := &discard{header: make(http.Header)}, httptest.NewRequest("GET", "/", nil)
	if got := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); got != 0 {
		t.Errorf("a request without a body costs %v allocations, want none", got)
	}
}
