package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/api"
)

// discard is a ResponseWriter that keeps nothing but its header.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkRequest measures whole requests, from the request ID to the database,
// without the network.
func BenchmarkRequest(b *testing.B) {
	s := start(b, func(c *api.Config) {
		c.Uncharged = ratelimit.MustPlan("uncharged", ratelimit.Penalty{}, ratelimit.PerMinute(fixedwindow.MaxUnits))
	})
	s.pets(b, 100)
	limited := s.key(b, "limited", "enterprise", "1/day")
	withLimits := newKey("enterprise", "4000000000/minute")
	withLimits.Limits = []string{"4000000000/minute"}
	secret := s.format.Generate()
	s.issue(b, secret, withLimits)
	etag := s.Get(b, "/v1/pets").Header.Get("ETag")
	for _, bench := range []struct{ name, method, target, key, body, accept string }{
		{"list 20", "GET", "/v1/pets", s.Key, "", ""},
		{"list 20 with cursor and status", "GET", next(b, s.Get(b, "/v1/pets?status=sold")), s.Key, "", ""},
		{"list 20 not modified", "GET", "/v1/pets", s.Key, "", ""},
		{"list 100", "GET", "/v1/pets?limit=100", s.Key, "", ""},
		{"get", "GET", "/v1/pets/1", s.Key, "", ""},
		{"get with limits of the key", "GET", "/v1/pets/1", secret.Reveal(), "", ""},
		{"usage", "GET", "/v1/usage", s.Key, "", ""},
		{"refused body", "POST", "/v1/pets", s.Key, `{"name":1}`, ""},
		{"no key", "GET", "/v1/pets", "", "", ""},
		{"limited", "GET", "/v1/pets", limited, "", ""},
		{"document", "GET", "/openapi.json", "", "", ""},
	} {
		b.Run(strings.ReplaceAll(bench.name, " ", "_"), func(b *testing.B) {
			r := httptest.NewRequest(bench.method, bench.target, nil)
			if bench.key != "" {
				r.Header.Set("Authorization", "Bearer "+bench.key)
			}
			r.Header.Set("Content-Type", "application/json")
			if bench.name == "list 20 not modified" {
				r.Header.Set("If-None-Match", etag)
			}
			if bench.accept != "" {
				r.Header.Set("Accept-Encoding", bench.accept)
			}
			w := discard{make(http.Header)}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.h)
				if bench.body != "" {
					r.Body = io.NopCloser(strings.NewReader(bench.body))
				}
				s.handler.ServeHTTP(w, r)
			}
		})
	}
}
