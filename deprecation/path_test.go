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
	patterns := []string{"/v1/pets", "/v1/pets/{petId}", "/{a}/pets/{b}", "/v1/caf%C3%A9", "/v1/a%2Fb", "/v1/{x}/toys"}
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
			r, err := http.NewRequest(http.MethodGet, path, nil)
			if err != nil {
				continue // "/v1/pets/%" comes through no server either
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			got := w.Header().Get("Marked") != ""
			w = httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			if want := w.Code == http.StatusOK; got != want {
				t.Errorf("pattern %s, path %s: inside %v, a ServeMux says %v", pattern, path, got, want)
			}
		}
	}
}

func TestOnPathPanics(t *testing.T) {
	for pattern, want := range map[string]string{
		"":                  "does not begin with a slash",
		"v1/pets":           "does not begin with a slash",
		"GET /v1/pets":      "does not begin with a slash",
		"/":                 "has an empty segment",
		"/v1/pets/":         "has an empty segment",
		"/v1//pets":         "has an empty segment",
		"/v1/pet-{id}":      "neither a literal nor a wildcard",
		"/v1/{id":           "neither a literal nor a wildcard",
		"/v1/{}":            "neither a literal nor a wildcard",
		"/v1/{path...}":     "neither a literal nor a wildcard",
		"/v1/pets/{$}":      "neither a literal nor a wildcard",
		"/v1/%zz":           "invalid URL escape",
		"/v1/{a}{b}":        "neither a literal nor a wildcard",
		"/v1/pets/{petId}/": "has an empty segment",
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("OnPath(%q) panicked with %v, want %q", pattern, got, want)
				}
			}()
			deprecation.OnPath(pattern, func(h http.Handler) http.Handler { return h })
		}()
	}
}
