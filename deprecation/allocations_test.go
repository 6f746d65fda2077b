package deprecation_test

import (
	"net/http"
	"testing"

	"github.com/animalstore/gatehouse/deprecation"
)

// silent is a ResponseWriter that allocates nothing.
type silent struct{ header http.Header }

func (w silent) Header() http.Header         { return w.header }
func (w silent) Write(b []byte) (int, error) { return len(b), nil }
func (w silent) WriteHeader(int)             {}

func stack(d *deprecation.Declaration) map[string]http.Handler {
	on := func(m func(http.Handler) http.Handler) func(http.Handler) http.Handler {
		return deprecation.OnPath("/v1/pets/{petId}", m)
	}
	return map[string]http.Handler{
		"bare":                  ok,
		"handler":               d.Enforce(ok),
		"headers, enforce":      d.Headers(d.Enforce(ok)),
		"both on path":          on(d.Headers)(on(d.Enforce)(ok)),
		"another path, passing": deprecation.OnPath("/v1/pets", d.Headers)(ok),
	}
}

func run(h http.Handler) func() {
	w := silent{http.Header{}}
	r, _ := http.NewRequest(http.MethodGet, "/v1/pets/7", nil)
	return func() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

func options() deprecation.Options {
	return deprecation.Options{
		Since: since, Sunset: sunset, Successor: successor,
		Brownouts: []deprecation.Brownout{{sunset.AddDate(0, -1, 0), sunset.AddDate(0, -1, 1)}},
		OnUse:     func(*http.Request) {},
	}
}

// The links cost one allocation, and the wildcard of a pattern one for each
// OnPath that matches.
func TestAllocations(t *testing.T) {
	want := map[string]float64{"bare": 0, "handler": 1, "headers, enforce": 1, "both on path": 3, "another path, passing": 0}
	for name, h := range stack(declare(t, before, options())) {
		if n := testing.AllocsPerRun(100, run(h)); n > want[name] {
			t.Errorf("%s: %v allocations a request before the sunset, promised are %v", name, n, want[name])
		}
	}
	d := declare(t, before, deprecation.Options{Sunset: sunset})
	if n := testing.AllocsPerRun(100, run(d.Headers(d.Enforce(ok)))); n != 0 {
		t.Errorf("without links: %v allocations a request, promised are none", n)
	}
}
