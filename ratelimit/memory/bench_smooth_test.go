package memory_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// BenchmarkTakeSmooth is Take under plans with smooth quotas.
func BenchmarkTakeSmooth(b *testing.B) {
	patient := ratelimit.DefaultPenalty()
	patient.Grace = time.Hour
	plan := func(quotas ...ratelimit.Quota) *ratelimit.Plan { return ratelimit.MustPlan("p", patient, quotas...) }
	steady := ratelimit.PerSecond(1_000_000).Smooth(1_000_000) // a bucket that is full most of the time
	unused := ratelimit.PerDay(fixedwindow.MaxUnits).Smooth(fixedwindow.MaxUnits)
	for _, bench := range []struct {
		name     string
		plan     *ratelimit.Plan
		subjects uint64
	}{
		{"hot", plan(unused), 1},
		{"10k", plan(unused), 10_000},
		{"full", plan(steady), 10_000},
		{"beside fixed windows", plan(unused, ratelimit.PerMinute(fixedwindow.MaxUnits), ratelimit.PerDay(fixedwindow.MaxUnits)), 1},
		{"two", plan(unused, ratelimit.PerHour(fixedwindow.MaxUnits/2).Smooth(fixedwindow.MaxUnits/2)), 1},
		{"denied", plan(ratelimit.PerDay(1).Smooth(1)), 1},
		{"denied for a moment", plan(ratelimit.PerSecond(2).Smooth(1)), 1},
		{"denied by a fixed second", plan(ratelimit.PerSecond(1)), 1},
	} {
		b.Run(bench.name, func(b *testing.B) {
			l := newLimiter(b, memory.Options{})
			n := newNamer()
			for i := range bench.subjects {
				take(b, l, n.name(i), bench.plan)
			}
			b.ReportAllocs()
			x := uint64(1)
			for b.Loop() {
				x = x*6364136223846793005 + 1442695040888963407
				if _, err := l.Take(ctx, n.name((x>>32)*bench.subjects>>32), bench.plan, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTakeSmoothParallel(b *testing.B) {
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerDay(fixedwindow.MaxUnits).Smooth(fixedwindow.MaxUnits))
	for _, bench := range []struct {
		name     string
		subjects uint64
	}{{"hot", 1}, {"10k", 10_000}} {
		b.Run(bench.name, func(b *testing.B) {
			l := newLimiter(b, memory.Options{})
			b.RunParallel(func(pb *testing.PB) {
				n := newNamer()
				x := uint64(time.Now().UnixNano())
				for pb.Next() {
					x = x*6364136223846793005 + 1442695040888963407
					if _, err := l.Take(ctx, n.name((x>>32)*bench.subjects>>32), plan, 1); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
