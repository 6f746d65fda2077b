package inflight_test

import (
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/animalstore/gatehouse/middleware/inflight"
)

// A subject with nothing running takes no memory, also after many at once.
func TestMemoryIsGivenBack(t *testing.T) {
	const subjects = 20_000
	l := newLimiter(1, inflight.Options{})
	var h http.Handler
	depth := 0
	h = l.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Each subject's request runs inside that of the one before.
		depth++
		running := depth
		if depth < subjects {
			h.ServeHTTP(w, request(strconv.Itoa(depth)))
		}
		if got := l.Stats().Subjects; running%100 == 0 && got != running {
			t.Errorf("%d subjects at once, want %d", got, running)
		}
	}))
	before := heap()
	ended(func() { h.ServeHTTP(nil, request("0")) })
	if grown := heap() - before; grown > 100<<10 {
		t.Errorf("%d bytes remain of %d subjects, want none", grown, subjects)
	}
	runtime.KeepAlive(l)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestAllocations(t *testing.T) {
	l := newLimiter(1, inflight.Options{})
	w := &discard{make(http.Header)}
	r := request("ann")
	admitted := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if got := testing.AllocsPerRun(1000, func() { admitted.ServeHTTP(w, r) }); got != 0 {
		t.Errorf("%v allocations for an admitted request, want 0", got)
	}
	l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if got := testing.AllocsPerRun(1000, func() { admitted.ServeHTTP(w, r) }); got != 0 {
			t.Errorf("%v allocations for a refused request, want 0", got)
		}
	})).ServeHTTP(w, r)
}

// discard is a ResponseWriter that allocates nothing once its header has been used.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

func BenchmarkSubjects(b *testing.B) {
	l := must(inflight.New(1000, bySubject, inflight.Options{}))
	benchmark(b, l)
}

func BenchmarkProcess(b *testing.B) {
	l := must(inflight.NewProcess(1000, inflight.Options{}))
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
	l := must(inflight.New(1, bySubject, inflight.Options{}))
	w, r := &discard{make(http.Header)}, request("owner:ann")
	l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		h := l.Middleware(nothing)
		b.ReportAllocs()
		for b.Loop() {
			h.ServeHTTP(w, r)
		}
	})).ServeHTTP(w, r)
}
