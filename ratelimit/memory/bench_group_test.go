package memory_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// BenchmarkTakeAll charges two subjects at once: one of so many, and one that all
// requests share.
func BenchmarkTakeAll(b *testing.B) {
	patient := ratelimit.DefaultPenalty()
	patient.Grace = time.Hour
	smooth := ratelimit.MustPlan("p", patient, ratelimit.PerDay(fixedwindow.MaxUnits).Smooth(fixedwindow.MaxUnits))
	for _, bench := range []struct {
		name     string
		plan     *ratelimit.Plan
		subjects uint64
	}{
		{"hot", roomy, 1},
		{"10k", roomy, 10_000},
		{"1M", roomy, 1_000_000},
		{"denied", tight, 1},
		{"smooth", smooth, 1},
		{"smooth, 10k", smooth, 10_000},
		{"smooth, denied", ratelimit.MustPlan("p", patient, ratelimit.PerDay(1).Smooth(1)), 1},
		{"smooth, denied for a moment", ratelimit.MustPlan("p", patient, ratelimit.PerSecond(2).Smooth(1)), 1},
	} {
		b.Run(bench.name, func(b *testing.B) {
			l := newLimiter(b, memory.Options{})
			n := newNamer()
			charges := []ratelimit.Charge{
				{Plan: bench.plan, Cost: 1},
				{Subject: "everybody, under a name of just as many bytes", Plan: roomy, Cost: 1},
			}
			decisions := make([]ratelimit.Decision, len(charges))
			takeAll := func(i uint64) {
				charges[0].Subject = n.name(i)
				if err := l.TakeAll(ctx, charges, decisions); err != nil {
					b.Fatal(err)
				}
			}
			for i := range bench.subjects {
				takeAll(i)
			}
			b.ReportAllocs()
			x := uint64(1)
			for b.Loop() {
				x = x*6364136223846793005 + 1442695040888963407
				takeAll((x >> 32) * bench.subjects >> 32)
			}
		})
	}
}

func BenchmarkTakeAllParallel(b *testing.B) {
	l := newLimiter(b, memory.Options{})
	b.RunParallel(func(pb *testing.PB) {
		n := newNamer()
		charges := []ratelimit.Charge{
			{Plan: roomy, Cost: 1},
			{Subject: "everybody, under a name of just as many bytes", Plan: roomy, Cost: 1},
		}
		decisions := make([]ratelimit.Decision, len(charges))
		x := uint64(time.Now().UnixNano())
		for pb.Next() {
			x = x*6364136223846793005 + 1442695040888963407
			charges[0].Subject = n.name((x >> 32) * 10_000 >> 32)
			if err := l.TakeAll(ctx, charges, decisions); err != nil {
				b.Fatal(err)
			}
		}
	})
}
