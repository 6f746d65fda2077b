//go:build unix

package redislimit_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// BenchmarkServer measures what a decision costs the server, which is what an
// attack has to exhaust: server-µs is the time in EVALSHA for one of them, as INFO
// commandstats has it. One call of the script decides about one subject, or about
// as many as it takes at most.
func BenchmarkServer(b *testing.B) {
	client := clientOf(b, redistest.Start(b))
	second, day := time.Second, 24*time.Hour
	penalty := func(strikes int, grace, ban time.Duration) ratelimit.Penalty {
		return ratelimit.Penalty{Strikes: strikes, Grace: grace, Ban: ban, Growth: 1, Max: ban, Forgive: day}
	}
	for _, c := range []struct {
		name    string
		penalty ratelimit.Penalty
		limit   int64 // of a day; a minute has more
		before  int   // requests of each subject before the clock starts
	}{
		{"admitted", ratelimit.DefaultPenalty(), fixedwindow.MaxUnits, 1},
		{"new", ratelimit.DefaultPenalty(), fixedwindow.MaxUnits, 0},
		{"grace", penalty(10, time.Hour, second), 1, 2},
		{"strike", penalty(10_000, 0, second), 1, 2},
		{"banned", penalty(1, 0, day), 1, 4},
		{"unpunished", ratelimit.Penalty{}, 1, 2},
		{"month", ratelimit.DefaultPenalty(), fixedwindow.MaxUnits, 1},
		{"smooth", ratelimit.DefaultPenalty(), 1_000_000_000, 1},
		{"smooth, refused", penalty(10, time.Hour, second), 1, 2},
	} {
		longer := ratelimit.PerDay(c.limit)
		switch c.name {
		case "month":
			longer = ratelimit.PerMonth(c.limit)
		case "smooth", "smooth, refused":
			longer = longer.Smooth(c.limit)
		}
		plan := ratelimit.MustPlan(c.name, c.penalty, ratelimit.PerMinute(fixedwindow.MaxUnits), longer)
		for _, subjects := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/subjects=%d", c.name, subjects), func(b *testing.B) {
				l, err := redislimit.New(client, redislimit.Options{})
				must(b, err)
				ask := redislimit.TakeAll(l, plan)
				round := func(round int) []string {
					names := names(subjects)
					if c.before == 0 {
						for i := range names {
							names[i] = fmt.Sprint(names[i], ":", round)
						}
					}
					return names
				}
				must(b, client.FlushAll(ctx).Err())
				for range c.before {
					must(b, ask(round(0)))
				}
				must(b, client.ConfigResetStat(ctx).Err())
				b.ResetTimer()
				for i := range b.N {
					if c.name == "strike" && i%5000 == 4999 { // before a ban begins
						b.StopTimer()
						must(b, client.FlushAll(ctx).Err())
						for range c.before {
							must(b, ask(round(0)))
						}
						b.StartTimer()
					}
					must(b, ask(round(i)))
				}
				b.StopTimer()
				b.ReportMetric(evalTime(b, client)/float64(subjects), "server-µs")
			})
		}
	}
}

// BenchmarkServerGroup measures the same of a take of two subjects, of which all requests are
// granted.
func BenchmarkServerGroup(b *testing.B) {
	client := clientOf(b, redistest.Start(b))
	l := newLimiter(b, client)
	plan := ratelimit.MustPlan("group", ratelimit.DefaultPenalty(), ratelimit.PerMinute(fixedwindow.MaxUnits), ratelimit.PerDay(fixedwindow.MaxUnits))
	charges := []ratelimit.Charge{{Subject: names(2)[0], Plan: plan, Cost: 1}, {Subject: names(2)[1], Plan: plan, Cost: 1}}
	take := func() { must(b, l.TakeAll(ctx, charges, make([]ratelimit.Decision, len(charges)))) }
	take()
	must(b, client.ConfigResetStat(ctx).Err())
	for b.Loop() {
		take()
	}
	b.ReportMetric(evalTime(b, client), "server-µs")
}

// BenchmarkServerLease measures the same of Lease: of a request and a share, of a share that
// is swapped for the next one, and of a request that is refused with others.
func BenchmarkServerLease(b *testing.B) {
	client := clientOf(b, redistest.Start(b))
	penalty := ratelimit.Penalty{Strikes: 10_000, Grace: time.Hour, Ban: time.Second, Growth: 1, Max: time.Second, Forgive: time.Hour}
	for _, c := range []struct {
		name  string
		limit int64
		cost  int64
		swap  bool
		terms engine.Terms
	}{
		{"take", 1 << 31, 1, false, engine.Terms{}},
		{"share", 1 << 31, 1, false, engine.Terms{More: 8}},
		{"swap", 1 << 31, 0, true, engine.Terms{More: 8}},
		{"many units", fixedwindow.MaxUnits, 1, false, engine.Terms{More: 8}},
		{"refused", 1, 1, false, engine.Terms{More: 8, Denied: 10}},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := newLimiter(b, client)
			plan := ratelimit.MustPlan(c.name, penalty, ratelimit.PerMinute(1<<31), ratelimit.PerDay(c.limit))
			lease := func() {
				d, err := l.Lease(ctx, names(1)[0], plan, c.cost, c.terms)
				must(b, err)
				if c.swap {
					c.terms.Back = &d
				}
			}
			lease()
			must(b, client.ConfigResetStat(ctx).Err())
			for b.Loop() {
				lease()
			}
			b.ReportMetric(evalTime(b, client), "server-µs")
		})
	}
}

// evalTime returns how many microseconds the server took for the scripts of each iteration.
func evalTime(b *testing.B, client *redis.Client) float64 {
	b.Helper()
	info, err := client.Info(ctx, "commandstats").Result()
	must(b, err)
	_, stats, _ := strings.Cut(info, "cmdstat_evalsha:")
	_, stats, _ = strings.Cut(stats, ",usec=")
	var micros float64
	if _, err := fmt.Sscanf(stats, "%f", &micros); err != nil {
		b.Fatalf("INFO commandstats: %v", err)
	}
	return micros / float64(b.N)
}

// names returns names of 45 bytes.
func names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("subject:aaaaaaaaaaaaaaaaaaaaaaaaaaa:%09d", i)
	}
	return names
}

// BenchmarkServerHold measures a request whose cost is settled, held and not, of some callers for
// each processor: server-µs is of both calls, ns/op what a lone request waits for.
func BenchmarkServerHold(b *testing.B) {
	client := clientOf(b, redistest.Start(b))
	plan := ratelimit.MustPlan("", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1<<31), ratelimit.PerDay(1<<31))
	subjects := names(1000)
	for _, callers := range []int{1, 16} {
		for _, held := range []bool{false, true} {
			b.Run(fmt.Sprintf("callers=%d/held=%t", callers, held), func(b *testing.B) {
				l := newLimiter(b, client)
				var n atomic.Int64
				request := func() {
					i := n.Add(1)
					id, view, subject := fmt.Sprintf("%026d", i), ratelimit.Limiter(l), subjects[i%1000]
					if held {
						view = l.Hold(id, time.Minute)
					}
					d, err := view.Take(ctx, subject, plan, 100)
					must(b, err)
					must(b, l.Adjust(ctx, subject, &d, 70, id))
				}
				request()
				must(b, client.ConfigResetStat(ctx).Err())
				b.SetParallelism(callers)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						request()
					}
				})
				b.StopTimer()
				b.ReportMetric(evalTime(b, client), "server-µs")
			})
		}
	}
}
