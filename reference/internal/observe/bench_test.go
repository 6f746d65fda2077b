package observe_test

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/observe"
)

// BenchmarkListPets compares GET /v1/pets with telemetry (metrics, and one request in a
// hundred traced) with the same without: in the handler alone, and over a connection on
// loopback, where client and server share the time. Turns of both alternate, so that
// both meet the same load of the machine, and the fastest turns are compared.
func BenchmarkListPets(b *testing.B) {
	off, offKey := newAPI(b, nil, nil)
	on, onKey := newAPI(b, observe.Sampled(b, 0.01), nil)
	b.Run("handler", func(b *testing.B) {
		compare(b, serving(b, off, offKey), serving(b, on, onKey))
	})
	b.Run("loopback", func(b *testing.B) {
		compare(b, fetching(b, off, offKey), fetching(b, on, onKey))
	})
}

// compare measures turns of 10 requests, and reports the time of a request in the
// fastest turn of each kind.
func compare(b *testing.B, off, on func()) {
	const turn = 10
	fastest := [2]time.Duration{math.MaxInt64, math.MaxInt64}
	for b.Loop() {
		for i, request := range []func(){off, on} {
			begin := time.Now()
			for range turn {
				request()
			}
			fastest[i] = min(fastest[i], time.Since(begin)/turn)
		}
	}
	b.ReportMetric(0, "ns/op") // of two turns, which says nothing
	b.ReportMetric(float64(fastest[0]), "ns/off")
	b.ReportMetric(float64(fastest[1]), "ns/on")
	b.ReportMetric(100*(float64(fastest[1])/float64(fastest[0])-1), "%more")
}

// serving returns a function that serves a request without a connection.
func serving(b *testing.B, h http.Handler, key string) func() {
	w, r := discard{make(http.Header)}, listPets(b, "http://pets.example", key)
	return func() {
		clear(w.h)
		h.ServeHTTP(w, r)
	}
}

// fetching returns a function that requests the pets from a server.
func fetching(b *testing.B, h http.Handler, key string) func() {
	s := httptest.NewServer(h)
	b.Cleanup(s.Close)
	r := listPets(b, s.URL, key)
	r.RequestURI = "" // is for servers
	return func() {
		resp, err := s.Client().Do(r)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			b.Fatal(resp.Status, err)
		}
		resp.Body.Close()
	}
}

func listPets(b *testing.B, base, key string) *http.Request {
	r := httptest.NewRequestWithContext(b.Context(), "GET", base+"/v1/pets", nil)
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("User-Agent", "benchmark")
	return r
}

// discard is a ResponseWriter that keeps nothing but its header.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
