//go:build unix

package redislimit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
)

// BenchmarkTake measures a decision over two quotas beside the least that Redis
// can be asked, a script that returns 1. Both use plain go-redis clients of one
// server. The benchmarks module measures other libraries beside this one.
func BenchmarkTake(b *testing.B) {
	c := clientOf(b, redistest.Start(b))
	l := newLimiter(b, c)
	request, end := context.WithCancel(ctx) // like that of an HTTP request
	defer end()
	many := ratelimit.MustPlan("many", ratelimit.DefaultPenalty(),
		ratelimit.PerMinute(fixedwindow.MaxUnits), ratelimit.PerDay(fixedwindow.MaxUnits))
	none := ratelimit.MustPlan("none", ratelimit.DefaultPenalty(),
		ratelimit.PerMinute(fixedwindow.MaxUnits), ratelimit.PerDay(1))
	trivial := redis.NewScript("return 1")
	if err := trivial.Load(ctx, c).Err(); err != nil {
		b.Fatal(err)
	}
	hot, spread := names(1), names(10_000)
	for _, subject := range spread {
		if _, err := l.Take(ctx, subject, many, 1); err != nil {
			b.Fatal(err)
		}
	}
	pair := func(subject string, plan *ratelimit.Plan) error {
		var decisions [2]ratelimit.Decision
		charges := [...]ratelimit.Charge{{Subject: subject, Plan: plan, Cost: 1}, {Subject: "everybody", Plan: many, Cost: 1}}
		return l.TakeAll(ctx, charges[:], decisions[:])
	}
	if err := pair("another", many); err != nil {
		b.Fatal(err)
	}
	for _, bench := range []struct {
		name     string
		subjects []string
		call     func(subject string) error
	}{
		{"evalsha/hot", hot, func(subject string) error {
			return trivial.EvalSha(ctx, c, []string{subject}).Err()
		}},
		{"evalsha/10k", spread, func(subject string) error {
			return trivial.EvalSha(ctx, c, []string{subject}).Err()
		}},
		{"gatehouse/hot", hot, func(subject string) error {
			_, err := l.Take(ctx, subject, many, 1)
			return err
		}},
		{"gatehouse/10k", spread, func(subject string) error {
			_, err := l.Take(ctx, subject, many, 1)
			return err
		}},
		{"gatehouse/request", hot, func(subject string) error {
			_, err := l.Take(request, subject, many, 1)
			return err
		}},
		{"gatehouse/denied", hot, func(subject string) error {
			_, err := l.Take(ctx, subject, none, 1)
			return err
		}},
		{"pair/hot", hot, func(subject string) error { return pair(subject, many) }},
		{"pair/10k", spread, func(subject string) error { return pair(subject, many) }},
		{"pair/denied", hot, func(subject string) error { return pair(subject, none) }},
	} {
		for _, callers := range []int{1, 16, 32} {
			b.Run(fmt.Sprintf("%s/callers=%d", bench.name, callers), func(b *testing.B) {
				benchmark(b, callers, bench.subjects, bench.call)
			})
		}
	}
}

// names returns names of 45 bytes.
func names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("subject:aaaaaaaaaaaaaaaaaaaaaaaaaaa:%09d", i)
	}
	return names
}

// benchmark has so many callers share b.N calls.
func benchmark(b *testing.B, callers int, subjects []string, call func(string) error) {
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(caller)))
			for left.Add(-1) >= 0 {
				if err := call(subjects[r.IntN(len(subjects))]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
