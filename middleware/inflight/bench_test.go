package inflight_test

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/animalstore/gatehouse/middleware/inflight"
)

// discard is a ResponseWriter that allocates nothing once its header has been used.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

func BenchmarkSubjects(b *testing.B) {
	l, err := inflight.New(1000, bySubject, inflight.Options{})
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, l)
}

func BenchmarkProcess(b *testing.B) {
	l, err := inflight.NewProcess(1000, inflight.Options{})
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, l)
}

// benchmark serves requests of as many subjects as there are goroutines.
func benchmark(b *testing.B, l *inflight.Limiter) {
	h := l.Middleware(nothing)
	var subjects atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		w := &discard{make(http.Header)}
		r := request("owner:" + strconv.FormatInt(subjects.Add(1), 10))
		for pb.Next() {
			h.ServeHTTP(w, r)
		}
	})
}

func BenchmarkRefused(b *testing.B) {
	l, err := inflight.New(1, bySubject, inflight.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w, r := &discard{make(http.Header)}, request("owner:ann")
	l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		h := l.Middleware(nothing)
		b.ReportAllocs()
		for b.Loop() {
			h.ServeHTTP(w, r)
		}
	})).ServeHTTP(w, r)
}
