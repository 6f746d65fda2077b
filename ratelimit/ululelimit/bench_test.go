package ululelimit_test

import (
	"testing"
	"time"

	"github.com/ulule/limiter/v3"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/ululelimit"
)

const subject = "owner-of-a-key-whose-name-is-0123456789abcdef"

// BenchmarkLimiter measures what the engine adds to the store under it.
func BenchmarkLimiter(b *testing.B) {
	for _, bench := range []struct {
		name  string
		limit int64
	}{{"allowed", fixedwindow.MaxUnits}, {"denied", 1}} {
		b.Run(bench.name+"/store alone", func(b *testing.B) {
			store := inMemory()
			rate := limiter.Rate{Limit: bench.limit, Period: time.Hour}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := store.Get(ctx, subject, rate); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(bench.name+"/engine", func(b *testing.B) {
			l, err := ululelimit.New(inMemory())
			if err != nil {
				b.Fatal(err)
			}
			p := plan(ratelimit.PerHour(bench.limit))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Take(ctx, subject, p, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStore measures what the store adds to the engine under it.
func BenchmarkStore(b *testing.B) {
	for _, bench := range []struct {
		name  string
		limit int64
	}{{"allowed", fixedwindow.MaxUnits - 1}, {"denied", 1}} {
		b.Run(bench.name+"/engine alone", func(b *testing.B) {
			engine := newMemory(b)
			p := plan(ratelimit.PerHour(bench.limit))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := engine.Take(ctx, subject, p, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(bench.name+"/store", func(b *testing.B) {
			store := newStore(b, newMemory(b), ululelimit.StoreOptions{})
			rate := limiter.Rate{Limit: bench.limit, Period: time.Hour}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := store.Get(ctx, subject, rate); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
