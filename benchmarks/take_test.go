package benchmarks

import (
	"context"
	"hash/maphash"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A scene is the keys that requests are made with, and what becomes of them.
type scene struct {
	name        string
	keys        int
	minute, day int
	denied      bool
}

var scenes = []scene{
	{name: "hot", keys: 1, minute: roomy, day: roomy},
	{name: "10k", keys: 10_000, minute: roomy, day: roomy},
	{name: "1M", keys: 1_000_000, minute: roomy, day: roomy},
	{name: "denied", keys: 1, minute: 1, day: 1000, denied: true},
	{name: "denied10k", keys: 10_000, minute: 1, day: 1000, denied: true},
}

// inPlace reports whether keys are so many that they are made in place.
func (s scene) inPlace() bool { return s.keys >= 50_000 }

// scaled returns the scene with the number of keys to be used.
func (s scene) scaled() scene {
	s.keys = scaled(s.keys)
	return s
}

// fill has the engine meet every key, and uses a key up if it is to be denied.
func (s scene) fill(take engine) {
	for i := range s.keys {
		key := newKey(uint64(i))
		for take(key) && s.denied {
		}
	}
}

// run makes requests for as long as the benchmark lasts.
func (s scene) run(b *testing.B, take engine) {
	n, o, admitted := uint64(s.keys), order(0), 0
	requests := 0
	rest()
	switch {
	case s.keys == 1:
		key := newKey(0)
		for b.Loop() {
			requests++
			if take(key) {
				admitted++
			}
		}
	case !s.inPlace():
		keys := newKeys(s.keys)
		for b.Loop() {
			requests++
			if take(keys[o.next(n)]) {
				admitted++
			}
		}
	default:
		k := newKeyMaker()
		for b.Loop() {
			requests++
			if take(k.key(o.next(n))) {
				admitted++
			}
		}
	}
	s.check(b, requests, admitted)
}

// check fails the benchmark if it did not measure what it says. When a window
// ends a request of each key is admitted even in a scene of denials.
func (s scene) check(b *testing.B, requests, admitted int) {
	switch {
	case !s.denied && admitted < requests:
		b.Errorf("%d of %d requests were denied, want none", requests-admitted, requests)
	case s.denied && admitted > requests/1000+2*s.keys:
		b.Errorf("%d of %d requests were admitted, want next to none", admitted, requests)
	}
}

// BenchmarkTake is one decision about both quotas. With a million keys it also
// reports what they take: bytes of heap a key, keys included where the engine
// keeps them, and the duration of one full collection.
func BenchmarkTake(b *testing.B) {
	for _, s := range scenes {
		for _, e := range engines {
			if s.denied && e.peer == "none" {
				continue
			}
			b.Run("case="+s.name+"/peer="+e.peer, func(b *testing.B) {
				s := s.scaled()
				before := heap()
				take := e.new(b, s.minute, s.day)
				s.fill(take)
				after := heap()
				b.ReportAllocs()
				s.run(b, take)
				if s.inPlace() && e.peer != "none" {
					b.ReportMetric(float64(after-before)/float64(s.keys), "B/key")
					b.ReportMetric(float64(collection().Microseconds())/1000, "gc-ms")
				}
				runtime.KeepAlive(take)
			})
		}
	}
	b.Run("case=banned/peer=gatehouse", func(b *testing.B) {
		l := newMemory(memory.Options{})
		take := takeFrom(l, plan(roomy, roomy))
		take(newKey(0))
		testcheck.NoError(b, l.Ban(context.Background(), newKey(0), 24*time.Hour, "strikes"))
		b.ReportAllocs()
		scene{keys: 1, denied: true}.run(b, take)
	})
}

// BenchmarkFirst is the first request of each key in a window: what a service decides whose
// callers send less than one request a window. The window is a second. Each of three passes
// begins when all windows are over, and ns/op is the fastest.
func BenchmarkFirst(b *testing.B) {
	minuteWindow = time.Second
	defer func() { minuteWindow = time.Minute }()
	for _, s := range scenes {
		if s.denied || s.keys == 1 {
			continue
		}
		for _, e := range engines {
			b.Run("case="+s.name+"/peer="+e.peer, func(b *testing.B) {
				s := s.scaled()
				take, k := e.new(b, 1_000_000, s.day), newKeyMaker() // throttled knows no more in a second
				s.fill(take)
				for b.Loop() {
					fastest := time.Hour
					for range 3 {
						time.Sleep(scaled(minuteWindow + 100*time.Millisecond))
						start := time.Now()
						for i := range uint64(s.keys) {
							if !take(k.key(i * 7919 % uint64(s.keys))) { // each once, in no order of a table
								b.Fatal("a request was denied, want none")
							}
						}
						fastest = min(fastest, time.Since(start))
					}
					b.ReportMetric(float64(fastest.Nanoseconds())/float64(s.keys), "ns/op")
				}
			})
		}
	}
}

// heap returns the bytes of all live objects.
func heap() int64 {
	runtime.GC()
	runtime.GC() // finishes the sweep of the first, and collects what it finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// collection returns the duration of one full collection, the shortest of three.
func collection() time.Duration {
	shortest := time.Duration(1<<63 - 1)
	for range 3 {
		start := time.Now()
		runtime.GC()
		shortest = min(shortest, time.Since(start))
	}
	return shortest
}

// oneWord is what processors can do at best that take turns at one word: read it,
// hash the key, and swap the word if nobody else did meanwhile.
var oneWord = maker{"word", func(testing.TB, int, int) engine {
	word, seed := new(struct {
		_ [64]byte
		n atomic.Uint64
		_ [64]byte
	}), maphash.MakeSeed()
	return func(key string) bool {
		for {
			old := word.n.Load()
			h := maphash.String(seed, key)
			if word.n.CompareAndSwap(old, old+1) {
				return h|1 != 0
			}
		}
	}
}}

// BenchmarkParallel is BenchmarkTake on as many goroutines as there are
// processors: run it with -cpu 1,2,4. Its ns/op is time for all of them
// together, so that with twice the processors half of it is perfect. What an
// engine fails to decide is in failed-%.
func BenchmarkParallel(b *testing.B) {
	for _, s := range scenes {
		if s.denied || s.inPlace() {
			continue
		}
		for _, e := range append(engines[:len(engines):len(engines)], oneWord) {
			if e.peer == oneWord.peer && s.keys > 1 {
				continue
			}
			b.Run("case="+s.name+"/peer="+e.peer, func(b *testing.B) {
				take := e.new(b, s.minute, s.day)
				s.fill(take)
				keys := newKeys(s.keys)
				var goroutines, failed atomic.Uint64
				rest()
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					o, n, denied := order(goroutines.Add(1)<<40), uint64(len(keys)), uint64(0)
					for pb.Next() {
						if !take(keys[o.next(n)]) {
							denied++
						}
					}
					failed.Add(denied)
				})
				b.ReportMetric(100*float64(failed.Load())/float64(b.N), "failed-%")
			})
		}
	}
}
