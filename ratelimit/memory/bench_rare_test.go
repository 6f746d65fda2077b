package memory_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

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
		l := newLimiter(b, memory.Options{})
		other := ratelimit.MustPlan("other", ratelimit.Penalty{}, ratelimit.PerHour(fixedwindow.MaxUnits))
		take(b, l, "a", other)
		for b.Loop() {
			if _, err := l.Take(ctx, "a", roomy, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("limited in the last second", func(b *testing.B) {
		l := newLimiter(b, memory.Options{Now: func() time.Time { return noon.Add(29500 * time.Millisecond) }})
		plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(1))
		for b.Loop() {
			if _, err := l.Take(ctx, "a", plan, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("a subject of 1024 bytes", func(b *testing.B) {
		l, name := newLimiter(b, memory.Options{}), strings.Repeat("n", 1024)
		for b.Loop() {
			take(b, l, name, roomy)
		}
	})
	b.Run("twelve windows in turn", func(b *testing.B) {
		l := newLimiter(b, memory.Options{})
		for i := 0; b.Loop(); i++ {
			take(b, l, "a", turns[i%len(turns)])
		}
	})
	b.Run("take and refund, with a month", func(b *testing.B) {
		l := newLimiter(b, memory.Options{})
		for b.Loop() {
			d := take(b, l, "a", monthly)
			if err := l.Adjust(ctx, "a", &d, 0, ""); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("plan made for each call", func(b *testing.B) {
		l := newLimiter(b, memory.Options{})
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
	full := func(b *testing.B) *memory.Limiter {
		l := newLimiter(b, memory.Options{MaxSubjects: subjects})
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
			l := newLimiter(b, memory.Options{})
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
	l := newLimiter(b, memory.Options{MaxSubjects: 4096})
	for b.Loop() {
		b.StopTimer()
		for i := range 2000 {
			if err := l.Ban(ctx, fmt.Sprint(i), time.Hour); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		if err := l.Save(func([]memory.Record) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
