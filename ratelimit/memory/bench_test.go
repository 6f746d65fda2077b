package memory

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
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
type namer struct {
	bytes    [45]byte
	subjects uint64
	random   uint64
}

func newNamer(subjects uint64) *namer {
	n := &namer{subjects: subjects, random: 1}
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

// next returns the name of one of the subjects.
func (n *namer) next() string {
	n.random = n.random*6364136223846793005 + 1442695040888963407
	return n.name((n.random >> 32) * n.subjects >> 32)
}

// takes are the decisions that the benchmarks measure.
func takes() (all []takeBench) {
	patient := ratelimit.DefaultPenalty()
	patient.Grace = time.Hour
	plan := func(quotas ...ratelimit.Quota) *ratelimit.Plan { return ratelimit.MustPlan("p", patient, quotas...) }
	steady := ratelimit.PerSecond(1_000_000).Smooth(1_000_000) // a bucket that is full most of the time
	unused := ratelimit.PerDay(1<<32 - 1).Smooth(1<<32 - 1)
	return []takeBench{
		{"hot", roomy, 1},
		{"10k", roomy, 10_000},
		{"1M", roomy, 1_000_000},
		{"denied", tight, 1},
		{"denied by a fixed second", plan(ratelimit.PerSecond(1)), 1},
		{"smooth", plan(unused), 1},
		{"smooth, 10k", plan(unused), 10_000},
		{"smooth, full", plan(steady), 10_000},
		{"smooth beside fixed windows", plan(unused, ratelimit.PerMinute(fixedwindow.MaxUnits), ratelimit.PerDay(fixedwindow.MaxUnits)), 1},
		{"two smooth", plan(unused, ratelimit.PerHour(1<<31).Smooth(1<<31)), 1},
		{"smooth, denied", plan(ratelimit.PerDay(1).Smooth(1)), 1},
		{"smooth, denied for a moment", plan(ratelimit.PerSecond(2).Smooth(1)), 1},
	}
}

type takeBench struct {
	name     string
	plan     *ratelimit.Plan
	subjects uint64
}

// spend takes one unit. It leaves out [testing.B.Helper], which costs ten times as
// much as a decision.
func spend(l *Limiter, subject string, plan *ratelimit.Plan) ratelimit.Decision {
	d, err := l.Take(ctx, subject, plan, 1)
	if err != nil {
		panic(err)
	}
	return d
}

func BenchmarkTake(b *testing.B) {
	for _, bench := range takes() {
		b.Run(bench.name, func(b *testing.B) {
			l, n := newLimiter(b, Options{}), newNamer(bench.subjects)
			for i := range bench.subjects {
				spend(l, n.name(i), bench.plan)
			}
			b.ReportAllocs()
			for b.Loop() {
				spend(l, n.next(), bench.plan)
			}
		})
	}
}

// BenchmarkFirst measures the first request of each subject in a window.
func BenchmarkFirst(b *testing.B) {
	for _, bench := range []takeBench{{"hot", roomy, 1}, {"10k", roomy, 10_000}, {"1M", roomy, 1_000_000}} {
		b.Run(bench.name, func(b *testing.B) {
			now := time.Unix(1_800_000_000, 0)
			l, n := newLimiter(b, Options{Now: func() time.Time { return now }}), newNamer(bench.subjects)
			i := uint64(0)
			next := func() {
				spend(l, n.name(i*7919%bench.subjects), bench.plan) // each once, in no order of the table
				if i++; i == bench.subjects {
					i, now = 0, now.Add(time.Minute)
				}
			}
			for range bench.subjects {
				next()
			}
			b.ReportAllocs()
			for b.Loop() {
				next()
			}
		})
	}
}

// BenchmarkRare measures what is not the common case and must not cost many
// times as much.
func BenchmarkRare(b *testing.B) {
	monthly := ratelimit.MustPlan("monthly", ratelimit.Penalty{}, ratelimit.PerMinute(1<<30), ratelimit.PerMonth(1<<30))
	var turns [3]*ratelimit.Plan // twelve windows
	for i := range turns {
		var quotas []ratelimit.Quota
		for j := range 4 {
			quotas = append(quotas, ratelimit.Quota{Limit: 1 << 30, Window: time.Duration(1+4*i+j) * time.Hour})
		}
		turns[i] = ratelimit.MustPlan("turn", ratelimit.Penalty{}, quotas...)
	}
	long, i := strings.Repeat("n", 1024), 0
	for _, bench := range []struct {
		name string
		call func(l *Limiter)
	}{
		{"limited", func(l *Limiter) { spend(l, "a", tight) }},
		{"a subject of 1024 bytes", func(l *Limiter) { spend(l, long, roomy) }},
		{"twelve windows in turn", func(l *Limiter) {
			i++
			spend(l, "a", turns[i%len(turns)])
		}},
		{"take and refund, with a month", func(l *Limiter) {
			d := spend(l, "a", monthly)
			if err := l.Adjust(ctx, "a", &d, 0, ""); err != nil {
				panic(err)
			}
		}},
		{"plan made for each call", func(l *Limiter) {
			spend(l, "a", ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1<<30), ratelimit.PerDay(1<<30)))
		}},
		{"banned", func(l *Limiter) {
			if i++; i == 1 {
				ban(b, l, "a", time.Hour)
			}
			spend(l, "a", tight)
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			l := newLimiter(b, Options{})
			for i = 0; b.Loop(); {
				bench.call(l)
			}
		})
	}
}

// BenchmarkFull measures requests at the bound, in a segment full of subjects that are
// kept, or nearly so.
func BenchmarkFull(b *testing.B) {
	const subjects = 4000
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.Quota{Limit: 1, Window: fixedwindow.MaxLength})
	group := []ratelimit.Charge{{Subject: "new", Plan: plan, Cost: 1}, {Subject: "7", Plan: roomy, Cost: 1}}
	decisions := make([]ratelimit.Decision, len(group))
	for _, bench := range []struct {
		name    string
		reset   string // the subject that is not kept; "": all are
		refused bool   // there is no room
		call    func(l *Limiter, i int) error
	}{
		{"limited", "", false, func(l *Limiter, _ int) error { return second(l.Take(ctx, "7", plan, 1)) }},
		{"new", "", true, func(l *Limiter, _ int) error { return second(l.Take(ctx, "new", plan, 1)) }},
		{"new in a group", "", true, func(l *Limiter, _ int) error { return l.TakeAll(ctx, group, decisions) }},
		{"new, one not kept", "7", false, func(l *Limiter, i int) error {
			err := second(l.Take(ctx, fmt.Sprint("new ", i), roomy, 1))
			if errors.Is(err, ratelimit.ErrUnavailable) { // it has not met the place that is free
				return nil
			}
			return err
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			l := newLimiter(b, Options{MaxSubjects: subjects})
			for i := range subjects {
				spend(l, fmt.Sprint(i), plan)
			}
			if bench.reset != "" {
				must(b, l.Reset(ctx, bench.reset))
			}
			for i := 0; b.Loop(); i++ {
				if err := bench.call(l, i); err != nil && !bench.refused || bench.refused && !errors.Is(err, ratelimit.ErrUnavailable) {
					b.Fatal(err)
				}
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }
