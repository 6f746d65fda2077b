//go:build unix

package redislimit_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

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
