package api_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Responses share the values of header fields that are always the same. A handler around
// the API that adds to each field changes neither other fields nor other responses.
func TestResponsesDoNotShareWhatIsAddedToThem(t *testing.T) {
	s := start(t, nil)
	s.pets(t, 1)
	limited := s.key(t, "limited", "enterprise", "1/day")
	// These differ between two requests.
	varying := []string{"X-Request-Id", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After"}
	for _, tt := range []struct{ method, target, key string }{
		{"GET", "/v1/pets", ""}, {"GET", "/v1/pets", s.Key}, {"GET", "/v1/pets", limited}, {"GET", "/v1/pets/1", s.Key},
		{"PUT", "/v1/pets", s.Key}, {"OPTIONS", "/v1/pets", s.Key}, {"GET", "/v1/nothing", s.Key}, {"GET", "/docs", ""},
	} {
		serve := func() http.Header {
			r := httptest.NewRequest(tt.method, tt.target, nil)
			if tt.key != "" {
				r.Header.Set("Authorization", "Bearer "+tt.key)
			}
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			return w.Header()
		}
		serve() // uses up the one request of the day
		h := serve()
		before := h.Clone()
		for _, name := range slices.Sorted(maps.Keys(h)) {
			h[name] = append(h[name], "added")
		}
		want := before.Clone()
		for name := range want {
			want[name] = append(want[name], "added")
		}
		if diff := cmp.Diff(want, h); diff != "" {
			t.Errorf("%s %s: adding to each field changed another one (-want +got):\n%s", tt.method, tt.target, diff)
		}
		after := serve()
		for _, name := range varying {
			delete(before, name)
			delete(after, name)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s %s: the next response is different (-want +got):\n%s", tt.method, tt.target, diff)
		}
	}
}
