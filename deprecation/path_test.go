package deprecation_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/deprecation"
)

// A pattern matches what it matches in a ServeMux.
func TestOnPath(t *testing.T) {
	patterns := []string{"/v1/pets", "/v1/pets/{petId}", "/{a}/pets/{b}", "/v1/caf%C3%A9", "/v1/a%2Fb", "/v1/{x}/toys",
		"/", "/{$}", "/v1/", "/v1/pets/", "/v1/{$}", "/v1/pets/{$}", "/v1/{rest...}", "/v1/pets/{petId}/", "/v1/caf%C3%A9/{x}", "/{rest...}"}
	paths := []string{
		"/", "/v1", "/v1/pets", "/v1/pets/", "/v1/pets/7", "/v1/pets/7/", "/v1/pets/7/toys", "/v2/pets/7", "/v1/Pets/7",
		"/v1/%70ets", "/v1/%70ets/%37", "/v1/pets/a%2Fb", "/v1%2Fpets", "/v1/pets/%", "/v1/pets/..", "/v1/pets/.", "/v1/pets/%2e%2e", "/v1/caf%C3%A9", "/v1/café",
		"/v1/caf%c3%a9", "/v1/a%2Fb", "/v1/a%2fb", "/v1/a/b", "/v1/{petId}/toys", "/v1/x/toys", "/v1/pets/%00", "//v1/pets",
	}
	for _, pattern := range patterns {
		mark := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Marked", "1")
				next.ServeHTTP(w, r)
			})
		}
		h := deprecation.OnPath(pattern, mark)(ok)
		mux := http.NewServeMux()
		mux.Handle(pattern, ok)
		for _, path := range paths {
			for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodConnect} {
				r, err := http.NewRequest(method, path, nil)
				if err != nil {
					continue // no server lets "/v1/pets/%" through either
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				got := w.Header().Get("Marked") != ""
				w = httptest.NewRecorder()
				mux.ServeHTTP(w, r)
				if want := w.Code == http.StatusOK; got != want {
					t.Errorf("pattern %s, %s %s: inside %v, a ServeMux says %v", pattern, method, path, got, want)
				}
			}
		}
	}
}

// OnPath refuses what a ServeMux refuses, and patterns with a method or a host.
func TestOnPathPanics(t *testing.T) {
	pass := func(h http.Handler) http.Handler { return h }
	for _, tt := range []struct {
		pattern string
		m       func(http.Handler) http.Handler
		want    string
	}{
		{"", pass, "must begin with a slash"},
		{"GET /v1/pets", pass, "must begin with a slash"},
		{"example.com/v1/pets", pass, "must begin with a slash"},
		{"/{a}/{a}", pass, "duplicate wildcard"},
		{"/v1/{$}/pets", pass, "{$} not at end"},
		{"/v1/pets", nil, `deprecation: OnPath("/v1/pets"): the middleware must not be nil`},
	} {
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, tt.want) {
					t.Errorf("OnPath(%q) panicked with %s, want %q", tt.pattern, p, tt.want)
				}
			}()
			deprecation.OnPath(tt.pattern, tt.m)
		}()
	}
}
