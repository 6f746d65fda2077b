package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/keys"
	"github.com/animalstore/gatehouse/reference/internal/logging"
	"github.com/animalstore/gatehouse/reference/internal/observe"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// BenchmarkHandler measures whole requests with the log in a file and with metrics, as
// the server has them by default, but without the network.
func BenchmarkHandler(b *testing.B) {
	s := newBenchServer(b)
	for _, bench := range s.cases {
		b.Run(bench.name, func(b *testing.B) {
			w := &discard{h: make(http.Header)}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.h)
				s.handler.ServeHTTP(w, bench.request)
			}
			bench.check(b, w.status)
		})
	}
}

// A benchServer is the API with its own database, log and keys.
type benchServer struct {
	handler http.Handler
	cases   []benchCase
}

// A benchCase is a request that always has the same status.
type benchCase struct {
	name    string
	request *http.Request
	status  int
}

func (c benchCase) check(b *testing.B, status int) {
	if status != c.status {
		b.Errorf("the status is %d, want %d", status, c.status)
	}
}

const benchSettings = `
anonymous: [1000000000/minute, 1000000000/day]
plans: {wide: [1000000000/minute, 1000000000/day], narrow: [1000000000/minute, 1/day]}
penalty: {strikes: 0}
`

func newBenchServer(b *testing.B) *benchServer {
	file := filepath.Join(b.TempDir(), "petstore.yaml")
	put(b, file, benchSettings)
	c, err := config.NewSource(config.Flags{Config: &file}, func(string) (string, bool) { return "", false }).Load()
	if err != nil {
		b.Fatal(err)
	}
	c.Database = filepath.Join(b.TempDir(), "petstore.db")
	c.Log.File = filepath.Join(b.TempDir(), "log")
	log, err := logging.Open(c.Log, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { log.Close(time.Second) })
	observer, err := observe.Start(b.Context(), "", log.Logger())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(observer.Close)
	s, err := open(b.Context(), c, Options{Logger: log.Logger(), Log: log, Notice: io.Discard}, &startup{observer: observer})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.close(); err != nil {
			b.Error(err)
		}
	})
	handler, err := s.newHandler(c)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.limiter.Ban(b.Context(), "owner:banned", 24*time.Hour); err != nil {
		b.Fatal(err)
	}
	for range 20 {
		if _, err := s.store.CreatePet(b.Context(), store.NewPet{Name: "Rex"}); err != nil {
			b.Fatal(err)
		}
	}
	wide, narrow := s.benchKey(b, "wide", "wide"), s.benchKey(b, "narrow", "narrow")
	handler.ServeHTTP(httptest.NewRecorder(), benchRequest("GET", "/v1/pets", narrow)) // the one of the day
	return &benchServer{handler, []benchCase{
		{"401", benchRequest("GET", "/v1/pets", ""), 401},
		{"429", benchRequest("GET", "/v1/pets", narrow), 429},
		{"banned", benchRequest("GET", "/v1/pets", s.benchKey(b, "banned", "wide")), 429},
		{"404", benchRequest("GET", "/v1/nothing", wide), 404},
		{"204", benchRequest("OPTIONS", "/v1/pets", wide), 204},
		{"200", benchRequest("GET", "/v1/pets", wide), 200},
	}}
}

// benchKey returns a new key.
func (s *state) benchKey(b *testing.B, owner, plan string) string {
	secret, err := keys.NewSecret()
	if err != nil {
		b.Fatal(err)
	}
	_, err = s.store.CreateKey(b.Context(), store.NewKey{
		Digest: secret.Digest(), LastFour: secret.LastFour(), Name: "n", Owner: owner, Plan: plan, Created: time.Now(),
	}, store.Actor{Name: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	return secret.Reveal()
}

func benchRequest(method, target, key string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.Body = http.NoBody
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return r
}

// discard is a ResponseWriter that keeps only the status.
type discard struct {
	h      http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }
