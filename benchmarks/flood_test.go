package benchmarks

import (
	"context"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// BenchmarkFlood sends fifty million subjects that were never seen before
// through an engine with room for a million. It fails if one that was banned, or
// had used half of a quota, is forgotten for them. ns/op is one of these subjects.
func BenchmarkFlood(b *testing.B) {
	long(b)
	const (
		fresh = 50_000_000
		bound = 1_000_000
		kept  = 1000 // of each kind
	)
	for b.Loop() {
		ctx := context.Background()
		// The engine's time passes with the flood, a microsecond a subject, so that
		// no window and no ban ends meanwhile, however slow the machine is.
		now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		l := newMemory(memory.Options{MaxSubjects: bound, Now: func() time.Time { return now }})
		penalty := ratelimit.DefaultPenalty()
		penalty.Grace = 0
		p := ratelimit.MustPlan("free", penalty, ratelimit.PerMinute(60), ratelimit.PerDay(1000))
		take := func(subject string, cost int64) ratelimit.Decision {
			return must(l.Take(ctx, subject, p, cost))
		}

		for i := range kept {
			number := newKey(uint64(i))
			if err := l.Ban(ctx, "banned by hand "+number, time.Hour, ""); err != nil {
				b.Fatal(err)
			}
			take("struck "+number, 60)
			for d := take("struck "+number, 1); d.Outcome != ratelimit.Banned; {
				d = take("struck "+number, 1)
			}
			take("half of the minute "+number, 30)
			take("limited "+number, 60)
			take("limited "+number, 1)
		}

		var w stopwatch
		refused, k, began := 0, newKeyMaker(), time.Now()
		one := func(key string) bool {
			_, err := l.Take(ctx, key, p, 1)
			return err == nil
		}
		for i := range uint64(fresh) {
			now = now.Add(time.Microsecond)
			if !w.time(one, k.key(i)) {
				refused++
			}
		}
		took := time.Since(began)

		for _, c := range []struct {
			name      string
			outcome   ratelimit.Outcome
			remaining int64 // in the minute
		}{
			{"banned by hand ", ratelimit.Banned, 60},
			{"struck ", ratelimit.Banned, 0},
			{"half of the minute ", ratelimit.Allowed, 30},
			{"limited ", ratelimit.Limited, 0},
		} {
			forgotten := 0
			for i := range kept {
				d := must(l.Peek(ctx, c.name+newKey(uint64(i)), p))
				if d.Outcome != c.outcome || d.States[0].Remaining != c.remaining {
					forgotten++
				}
			}
			if forgotten > 0 {
				b.Errorf("%d of %d subjects of the kind %q were forgotten, want none", forgotten, kept, c.name)
			}
		}
		s := l.Stats()
		if s.Subjects > s.Bound {
			b.Errorf("%d subjects are held, want %d at most", s.Subjects, s.Bound)
		}
		b.ReportMetric(float64(took.Nanoseconds())/fresh, "ns/op")
		b.ReportMetric(float64(s.Evicted), "evicted")
		b.ReportMetric(float64(refused), "refused")
		w.report(b, "flood")
	}
}
