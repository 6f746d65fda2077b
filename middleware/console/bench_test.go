package console_test

import (
	"fmt"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/console"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// BenchmarkCount measures counting: with one busy subject, with a few hundred, and under a flood
// of new ones.
func BenchmarkCount(b *testing.B) {
	plan := ratelimit.MustPlan("roomy", ratelimit.Penalty{}, ratelimit.PerMinute(100))
	for _, subjects := range []int{1, 100, 300, 100_000} {
		b.Run(fmt.Sprintf("subjects=%d", subjects), func(b *testing.B) {
			ops := testcheck.Must(console.New(testcheck.Must(memory.New(memory.Options{})), console.Options{}))
			names := make([]string, subjects)
			for i := range names {
				names[i] = fmt.Sprintf("user:%040d", i)
			}
			d := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: plan, Time: 1_764_892_800_000_000_000}
			i := 0
			for b.Loop() {
				i++
				ops.Observe(nil, ratelimit.Caller{Subject: names[i%subjects], Plan: plan}, d, nil)
			}
		})
	}
}
