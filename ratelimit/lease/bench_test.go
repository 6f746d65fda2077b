package lease

import (
	"testing"

	"github.com/animalstore/gatehouse/ratelimit"
)

func BenchmarkTake(b *testing.B) {
	for name, limit := range map[string]int64{"hot": 1_000_000_000, "exhausted": 10} {
		b.Run(name, func(b *testing.B) {
			f := newCounted(nil)
			l, err := New(f)
			must(b, err)
			defer l.Close()
			p := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(limit), ratelimit.PerDay(1_000_000_000_000))
			b.ReportAllocs()
			for b.Loop() {
				if d, err := l.Take(ctx, "owner:203.0.113.17:aaaaaaaaaaaaaaaaaaaaaaaaaaaa", p, 1); err != nil || name == "hot" && !d.Allowed() {
					b.Fatal(d, err)
				}
			}
			b.ReportMetric(float64(f.calls.Load()), "calls")
		})
	}
}
