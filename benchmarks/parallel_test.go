package benchmarks

import (
	"sync/atomic"
	"testing"
)

// BenchmarkParallel is BenchmarkTake on as many goroutines as there are
// processors: run it with -cpu 1,2,4. Its ns/op is time for all of them
// together, so that with twice the processors half of it is perfect. What an
// engine fails to decide is in failed-%.
func BenchmarkParallel(b *testing.B) {
	for _, s := range scenes {
		if s.denied || s.inPlace() {
			continue
		}
		for _, e := range engines {
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
