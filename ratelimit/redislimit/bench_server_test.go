//go:build unix

package redislimit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
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
	} {
		longer := ratelimit.PerDay(c.limit)
		if c.name == "month" {
			longer = ratelimit.PerMonth(c.limit)
		}
		plan := ratelimit.MustPlan(c.name, c.penalty, ratelimit.PerMinute(fixedwindow.MaxUnits), longer)
		for _, subjects := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/subjects=%d", c.name, subjects), func(b *testing.B) {
				l, err := redislimit.New(client, redislimit.Options{})
				if err != nil {
					b.Fatal(err)
				}
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
				if err := client.FlushAll(ctx).Err(); err != nil {
					b.Fatal(err)
				}
				for range c.before {
					if err := ask(round(0)); err != nil {
						b.Fatal(err)
					}
				}
				if err := client.ConfigResetStat(ctx).Err(); err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				for i := range b.N {
					if c.name == "strike" && i%5000 == 4999 { // before a ban begins
						b.StopTimer()
						if err := client.FlushAll(ctx).Err(); err != nil {
							b.Fatal(err)
						}
						for range c.before {
							if err := ask(round(0)); err != nil {
								b.Fatal(err)
							}
						}
						b.StartTimer()
					}
					if err := ask(round(i)); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				b.ReportMetric(evalTime(b, client)/float64(subjects), "server-µs")
			})
		}
	}
}

// BenchmarkServerGroups is BenchmarkServer for requests that are charged to two subjects,
// the second one the same for all of them, and for requests of one subject.
func BenchmarkServerGroups(b *testing.B) {
	client := clientOf(b, redistest.Start(b))
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(fixedwindow.MaxUnits), ratelimit.PerDay(fixedwindow.MaxUnits))
	for _, requests := range []int{1, 8, 16, 32} {
		for _, subjects := range []int{1, 2} {
			b.Run(fmt.Sprintf("requests=%d/subjects=%d", requests, subjects), func(b *testing.B) {
				l, err := redislimit.New(client, redislimit.Options{})
				if err != nil {
					b.Fatal(err)
				}
				ask := redislimit.TakeAll(l, plan)
				if subjects == 2 {
					ask = redislimit.TakeWithEverybody(l, plan)
				}
				some := names(requests)
				if err := ask(some); err != nil {
					b.Fatal(err)
				}
				if err := client.ConfigResetStat(ctx).Err(); err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				for range b.N {
					if err := ask(some); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				b.ReportMetric(evalTime(b, client)/float64(requests), "server-µs")
			})
		}
	}
}

// BenchmarkServerPairs measures what a decision about two subjects costs the server, and
// beside it one about one subject: server-µs is as in BenchmarkServer.
func BenchmarkServerPairs(b *testing.B) {
	client := clientOf(b, redistest.Start(b))
	patient := ratelimit.DefaultPenalty()
	patient.Grace = time.Hour
	plan := func(quotas ...ratelimit.Quota) *ratelimit.Plan { return ratelimit.MustPlan("p", patient, quotas...) }
	const most = fixedwindow.MaxUnits
	minute, day, month := ratelimit.PerMinute(most), ratelimit.PerDay(most), ratelimit.PerMonth(most)
	smooth, one := ratelimit.PerHour(most/2).Smooth(most/2), ratelimit.PerHour(1).Smooth(1)
	for _, c := range []struct {
		name        string
		plan, roomy *ratelimit.Plan // of the subject, and of the one that all requests share
	}{
		{"fixed", plan(minute, day), plan(minute, day)},
		{"fixed, denied", plan(minute, ratelimit.PerDay(1)), plan(minute, day)},
		{"smooth", plan(smooth), plan(smooth)},
		{"smooth, denied", plan(one), plan(smooth)},
		{"smooth and day", plan(smooth, day), plan(smooth, day)},
		{"smooth and day, denied", plan(one, day), plan(smooth, day)},
		{"smooth and month", plan(smooth, month), plan(smooth, month)},
		{"smooth and month, denied", plan(one, month), plan(smooth, month)},
		{"smooth and fixed", plan(smooth), plan(minute, day)},
	} {
		charges := []ratelimit.Charge{{Subject: names(1)[0], Plan: c.plan, Cost: 1}, {Subject: "everybody, under a name of just as many bytes", Plan: c.roomy, Cost: 1}}
		decisions := make([]ratelimit.Decision, 2)
		for _, bench := range []struct {
			name string
			do   func(l *redislimit.Limiter) error
		}{
			{"one", func(l *redislimit.Limiter) error {
				_, err := l.Take(ctx, charges[0].Subject, c.plan, 1)
				return err
			}},
			{"pair", func(l *redislimit.Limiter) error { return l.TakeAll(ctx, charges, decisions) }},
		} {
			b.Run(c.name+"/"+bench.name, func(b *testing.B) {
				l, err := redislimit.New(client, redislimit.Options{})
				if err != nil {
					b.Fatal(err)
				}
				if err := client.FlushAll(ctx).Err(); err != nil {
					b.Fatal(err)
				}
				for range 2 { // once without the script
					if err := bench.do(l); err != nil {
						b.Fatal(err)
					}
				}
				if err := client.ConfigResetStat(ctx).Err(); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if err := bench.do(l); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(evalTime(b, client), "server-µs")
			})
		}
	}
}

// evalTime returns how many microseconds the server took for each call of a script.
func evalTime(b *testing.B, client *redis.Client) float64 {
	b.Helper()
	info, err := client.Info(ctx, "commandstats").Result()
	if err != nil {
		b.Fatal(err)
	}
	_, stats, _ := strings.Cut(info, "cmdstat_evalsha:")
	_, stats, _ = strings.Cut(stats, "usec_per_call=")
	var micros float64
	if _, err := fmt.Sscanf(stats, "%f", &micros); err != nil {
		b.Fatalf("INFO commandstats: %v", err)
	}
	return micros
}
