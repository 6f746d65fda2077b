package apierror_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/apierror"
)

// discard is a ResponseWriter that allocates nothing once its header section has
// been used.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkMux shows what Mux adds to a ServeMux, which is the second look-up of
// the route.
func BenchmarkMux(b *testing.B) {
	mux := http.NewServeMux()
	for _, pattern := range []string{"GET /v1/pets", "POST /v1/pets", "GET /v1/pets/{petId}", "GET /v1/usage", "GET /openapi.json"} {
		mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) {})
	}
	var rs apierror.Responder
	for _, target := range []string{"/v1/pets", "/v1/pets/42"} {
		name := strings.ReplaceAll(target[1:], "/", "_")
		for _, side := range []struct {
			name    string
			handler http.Handler
		}{{"ServeMux", mux}, {"Mux", rs.Mux(mux)}} {
			b.Run(name+"/"+side.name, func(b *testing.B) {
				r, w := httptest.NewRequest(http.MethodGet, target, nil), &discard{header: make(http.Header)}
				b.ReportAllocs()
				for b.Loop() {
					side.handler.ServeHTTP(w, r)
				}
			})
		}
	}
	for name, r := range map[string]*http.Request{
		"not_found":          httptest.NewRequest(http.MethodGet, "/v1/dogs", nil),
		"method_not_allowed": httptest.NewRequest(http.MethodDelete, "/v1/pets", nil),
	} {
		b.Run(name, func(b *testing.B) {
			h, w := rs.Mux(mux), &discard{header: make(http.Header)}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}
