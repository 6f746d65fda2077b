package benchmarks

import (
	"hash/maphash"
	"sync/atomic"
	"testing"
)

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
