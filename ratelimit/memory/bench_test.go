package memory

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
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
			l := newLimiter(b, Options{})
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
			l := newLimiter(b, Options{})
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
		l := newLimiter(b, Options{MaxSubjects: million})
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
			l := newLimiter(b, Options{})
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
			l := newLimiter(b, Options{})
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
			l := newLimiter(b, Options{})
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
	l := newLimiter(b, Options{})
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

var (
	monthly = ratelimit.MustPlan("monthly", ratelimit.Penalty{}, ratelimit.PerMinute(1<<30), ratelimit.PerMonth(1<<30))
	turns   = func() (plans [3]*ratelimit.Plan) {
		for i := range plans {
			var quotas []ratelimit.Quota
			for j := range 4 {
				quotas = append(quotas, ratelimit.Quota{Limit: 1 << 30, Window: time.Duration(1+4*i+j) * time.Hour})
			}
			plans[i] = ratelimit.MustPlan("turn", ratelimit.Penalty{}, quotas...)
		}
		return plans
	}()
)

// BenchmarkRare measures what is not the common case and must not cost many
// times as much.
func BenchmarkRare(b *testing.B) {
	b.Run("after one call under another plan", func(b *testing.B) {
		l := newLimiter(b, Options{})
		other := ratelimit.MustPlan("other", ratelimit.Penalty{}, ratelimit.PerHour(fixedwindow.MaxUnits))
		take(b, l, "a", other)
		for b.Loop() {
			if _, err := l.Take(ctx, "a", roomy, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("limited in the last second", func(b *testing.B) {
		l := newLimiter(b, Options{Now: func() time.Time { return noon.Add(29500 * time.Millisecond) }})
		plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(1))
		for b.Loop() {
			if _, err := l.Take(ctx, "a", plan, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("a subject of 1024 bytes", func(b *testing.B) {
		l, name := newLimiter(b, Options{}), strings.Repeat("n", 1024)
		for b.Loop() {
			take(b, l, name, roomy)
		}
	})
	b.Run("twelve windows in turn", func(b *testing.B) {
		l := newLimiter(b, Options{})
		for i := 0; b.Loop(); i++ {
			take(b, l, "a", turns[i%len(turns)])
		}
	})
	b.Run("take and refund, with a month", func(b *testing.B) {
		l := newLimiter(b, Options{})
		for b.Loop() {
			d := take(b, l, "a", monthly)
			if err := l.Adjust(ctx, "a", &d, 0, ""); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("plan made for each call", func(b *testing.B) {
		l := newLimiter(b, Options{})
		for b.Loop() {
			plan, err := ratelimit.NewPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1<<30), ratelimit.PerDay(1<<30))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := l.Take(ctx, "a", plan, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkFull measures requests at the bound, in a segment full of subjects that are
// held, or nearly so.
func BenchmarkFull(b *testing.B) {
	const subjects = 4000
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.Quota{Limit: 1, Window: fixedwindow.MaxLength})
	full := func(b *testing.B) *Limiter {
		l := newLimiter(b, Options{MaxSubjects: subjects})
		for i := range subjects {
			take(b, l, fmt.Sprint(i), plan)
		}
		return l
	}
	b.Run("limited", func(b *testing.B) {
		l := full(b)
		for b.Loop() {
			if _, err := l.Take(ctx, "7", plan, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("new", func(b *testing.B) {
		l := full(b)
		for b.Loop() {
			if _, err := l.Take(ctx, "new", plan, 1); !errors.Is(err, ratelimit.ErrUnavailable) {
				b.Fatal(err)
			}
		}
	})
	b.Run("new in a group", func(b *testing.B) {
		l := full(b)
		charges := []ratelimit.Charge{{Subject: "new", Plan: plan, Cost: 1}, {Subject: "7", Plan: roomy, Cost: 1}}
		decisions := make([]ratelimit.Decision, len(charges))
		for b.Loop() {
			if err := l.TakeAll(ctx, charges, decisions); !errors.Is(err, ratelimit.ErrUnavailable) {
				b.Fatal(err)
			}
		}
	})
	b.Run("new, one not held", func(b *testing.B) {
		l, i := full(b), 0
		if err := l.Reset(ctx, "7"); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			i++
			if _, err := l.Take(ctx, fmt.Sprint("new ", i), roomy, 1); err != nil && !errors.Is(err, ratelimit.ErrUnavailable) {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkBanned measures denials of many banned subjects in turn, which is what
// an attack looks like.
func BenchmarkBanned(b *testing.B) {
	for _, subjects := range []uint64{1, 10_000} {
		b.Run(fmt.Sprint(subjects), func(b *testing.B) {
			l := newLimiter(b, Options{})
			n := newNamer()
			for i := range subjects {
				take(b, l, n.name(i), tight)
				if err := l.Ban(ctx, n.name(i), time.Hour); err != nil {
					b.Fatal(err)
				}
			}
			x := uint64(1)
			for b.Loop() {
				x = x*6364136223846793005 + 1442695040888963407
				if d, err := l.Take(ctx, n.name((x>>32)*subjects>>32), tight, 1); err != nil || d.Allowed() {
					b.Fatal("a banned subject was admitted: ", err)
				}
			}
		})
	}
}

// BenchmarkSaveBans measures how long Save locks a segment with 2000 bans.
func BenchmarkSaveBans(b *testing.B) {
	l := newLimiter(b, Options{MaxSubjects: 4096})
	for b.Loop() {
		b.StopTimer()
		for i := range 2000 {
			if err := l.Ban(ctx, fmt.Sprint(i), time.Hour); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		if err := l.Save(func([]Record) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
