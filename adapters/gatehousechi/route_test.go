package gatehousechi_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/animalstore/gatehouse/adapters/gatehousechi"
	"github.com/animalstore/gatehouse/middleware"
)

// authenticate copies the request, as most authentication does.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		type key struct{}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, "ann")))
	})
}

// The log has the whole route with Route, whatever is between. Without it, it has what
// the comment of Route says; if this test fails there, Route may no longer be needed.
func TestRoute(t *testing.T) {
	none := func(next http.Handler) http.Handler { return next }
	for _, test := range []struct {
		path          string
		want, without string
	}{
		{"/pets/17", "/pets/{id}", ""},
		{"/v1/pets/17", "/v1/pets/{id}", ""},
		{"/v2/pets/17", "/v2/pets/{id}", ""},
		{"/broken", "/broken", ""},
		{"/nowhere", "", ""},
		{"/v1/nowhere", "/v1/*", ""},
	} {
		for _, with := range []bool{true, false} {
			var out strings.Builder
			log := slog.New(slog.NewTextHandler(&out, nil))
			route, want := gatehousechi.Route, test.want
			if !with {
				route, want = none, test.without
			}
			r := chi.NewRouter()
			r.Use(middleware.AccessLog(log), middleware.Recover(errs), route, authenticate)
			pet := func(http.ResponseWriter, *http.Request) {}
			r.Get("/pets/{id}", pet)
			r.Get("/broken", func(http.ResponseWriter, *http.Request) { panic("no") })
			r.Route("/v1", func(r chi.Router) {
				r.Use(authenticate)
				r.Get("/pets/{id}", pet)
			})
			r.Mount("/v2", func() http.Handler {
				r := chi.NewRouter()
				r.With(authenticate).Get("/pets/{id}", pet)
				return r
			}())
			r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", test.path, nil))
			found := regexp.MustCompile(`msg=request .*route=(\S+) `).FindStringSubmatch(out.String())
			if found == nil || strings.Trim(found[1], `"`) != want {
				t.Errorf("%s, with Route %t: the route is not %q in\n%s", test.path, with, want, &out)
			}
		}
	}
}
