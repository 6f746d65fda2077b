package api

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Requests have the same route, pattern and handler as without static routes.
func TestStaticRoutesAreWhatServeMuxFinds(t *testing.T) {
	a := &api{service: http.NewServeMux(), site: http.NewServeMux(), static: make(staticRoutes)}
	for _, res := range a.resources() {
		for method := range res.operations {
			a.handle(a.service, method, res.path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Served", method+" "+res.path+" as "+r.Pattern)
			}))
		}
	}
	plain := &api{service: a.service, site: a.site}
	found := 0
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "get", "BREW"} {
		for _, target := range []string{
			"/v1/pets", "/v1/pets?limit=1", "/v1/pets?", "/v1/usage", "http://other.example/v1/pets", "http://x@y:1/v1/pets#f",
			"/v1/pets/", "//v1/pets", "/v1//pets", "/v1/./pets", "/v1/x/../pets", "/v1/%70ets", "/v1/pets%2F", "/v1%2Fpets",
			"/v1/pets/1", "/v1/pets/{petId}", "/v1", "/", "*", "/V1/pets", "/v1/pets;a", "/v1/pets%20", "pets.example:443",
		} {
			r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " HTTP/1.1\r\nHost: pets.example\r\n\r\n")))
			if err != nil {
				continue // net/http refuses it
			}
			got, want := a.routeOf(r), plain.routeOf(r)
			if got.static != nil {
				found++
				served := func(h http.Handler) string {
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r.WithContext(&requestInfo{Context: r.Context(), route: got}))
					return w.Header().Get("Served")
				}
				if direct, byMux := served(staticOr(nil)), served(a.service); direct != byMux || direct == "" {
					t.Errorf("%s %s is served by %q, want %q", method, target, direct, byMux)
				}
			}
			if got.static = nil; got != want {
				t.Errorf("%s %s has the route %+v, want %+v", method, target, got, want)
			}
		}
	}
	if found < 10 {
		t.Errorf("%d of the requests have static routes, want those for /v1/pets and /v1/usage", found)
	}
}
