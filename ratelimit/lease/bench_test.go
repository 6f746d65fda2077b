package lease

import (
	"context"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit"
)

func BenchmarkHot(b *testing.B) {
	f := newCounted(nil)
	l, err := New(f)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	p := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1_000_000_000), ratelimit.PerDay(1_000_000_000_000))
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if d, err := l.Take(ctx, "owner:203.0.113.17:aaaaaaaaaaaaaaaaaaaaaaaaaaaa", p, 1); err != nil || !d.Allowed() {
			b.Fatal(d, err)
		}
	}
	b.ReportMetric(float64(f.calls.Load()), "calls")
	b.Log(l.Stats())
}

func BenchmarkExhausted(b *testing.B) {
	f := newCounted(nil)
	l, err := New(f)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	p := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(10), ratelimit.PerDay(1_000_000_000_000))
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Take(ctx, "owner:203.0.113.17:aaaaaaaaaaaaaaaaaaaaaaaaaaaa", p, 1); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(f.calls.Load()), "calls")
	b.Log(l.Stats())
}
