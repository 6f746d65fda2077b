package middleware_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

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
			if !tt.kept && !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(inContext) {
				t.Errorf("ID %q for incoming %q, want a new one of 32 hexadecimal digits", inContext, tt.incoming)
			}
		})
	}
}

func TestRequestIDsDiffer(t *testing.T) {
	seen := map[string]bool{}
	h := middleware.RequestID(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen[middleware.RequestIDFrom(r.Context())] = true
	}))
	for range 100 {
		serve(h, httptest.NewRequest("GET", "/", nil))
	}
	if len(seen) != 100 {
		t.Errorf("100 requests have %d different IDs", len(seen))
	}
}

func TestRequestIDContext(t *testing.T) {
	if got := middleware.RequestIDFrom(context.Background()); got != "" {
		t.Errorf("ID %q in a context without one, want none", got)
	}
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
	h := middleware.RequestID(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Context().Value(key{}); got != "value" {
			t.Errorf("value of the outer context is %v inside", got)
		}
		inner, cancelInner := context.WithCancel(r.Context())
		defer cancelInner()
		if got := middleware.RequestIDFrom(inner); got == "" {
			t.Error("no ID in a context derived from the request's")
		}
		cancel()
		<-inner.Done()
	}))
	serve(h, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
}
