package memory_test

import (
	"encoding/binary"
	"encoding/hex"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var (
	roomy = ratelimit.MustPlan("roomy", ratelimit.DefaultPenalty(),
		ratelimit.PerMinute(fixedwindow.MaxUnits), ratelimit.PerDay(fixedwindow.MaxUnits))
	tight = ratelimit.MustPlan("tight", ratelimit.DefaultPenalty(),
		ratelimit.PerMinute(1), ratelimit.PerDay(1000))
)

// A namer makes names of 45 bytes in place, so that a benchmark with a million
// subjects measures the engine's memory accesses and not those of a list of
// names.
type namer struct{ bytes [45]byte }

func newNamer() *namer {
	n := new(namer)
	copy(n.bytes[:], strings.Repeat("x", len(n.bytes)))
	return n
}

// name returns the name of the i-th subject. It is overwritten by the next call.
func (n *namer) name(i uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], i*0x9e3779b97f4a7c15)
	hex.Encode(n.bytes[29:], b[:])
	return unsafe.String(&n.bytes[0], len(n.bytes))
}

func BenchmarkTake(b *testing.B) {
	for _, bench := range []struct {
		name     string
		plan     *ratelimit.Plan
		subjects uint64
	}{
		{"hot", roomy, 1},
		{"10k", roomy, 10_000},
		{"1M", roomy, 1_000_000},
		{"denied", tight, 1},
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

func BenchmarkTakeParallel(b *testing.B) {
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
					if _, err := l.Take(ctx, n.name((x>>32)*bench.subjects>>32), roomy, 1); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkMillion fills an engine with a million subjects and reports what they
// cost: heap, a full garbage collection, and the longest single call.
func BenchmarkMillion(b *testing.B) {
	const million = 1_000_000
	for b.Loop() {
		var before, after runtime.MemStats
		time.Sleep(10 * time.Millisecond) // until the timer of the engine before has let go of it
		runtime.GC()
		runtime.ReadMemStats(&before)
		l := newLimiter(b, memory.Options{MaxSubjects: million})
		n := newNamer()
		var longest time.Duration
		last := time.Now()
		for i := range uint64(million) {
			take(b, l, n.name(i), roomy)
			now := time.Now()
			longest = max(longest, now.Sub(last))
			last = now
		}
		if held := l.Stats().Subjects; held != million {
			b.Fatalf("%d subjects are held, want a million", held)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		collected := time.Now()
		runtime.GC()
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/million, "B/subject")
		b.ReportMetric(float64(time.Since(collected).Microseconds()), "µs/GC")
		b.ReportMetric(float64(longest.Microseconds()), "µs/longest")
		runtime.KeepAlive(l)
	}
}
