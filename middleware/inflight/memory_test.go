package inflight_test

import (
	"net/http"
	"runtime"
	"strconv"
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
