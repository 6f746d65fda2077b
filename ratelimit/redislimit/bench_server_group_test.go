//go:build unix

package redislimit_test

import (
	"fmt"
	"testing"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

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
