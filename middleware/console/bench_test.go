package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/console"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// BenchmarkObserve measures what the console adds to a limited request: with one busy subject,
// with a few hundred, and under a flood of new ones.
func BenchmarkObserve(b *testing.B) {
	plan := ratelimit.MustPlan("roomy", ratelimit.Penalty{}, ratelimit.PerMinute(fixedwindow.MaxUnits), ratelimit.PerDay(fixedwindow.MaxUnits))
	for _, subjects := range []int{1, 300, 100_000} {
		names := make([]string, subjects)
		for i := range names {
			names[i] = fmt.Sprintf("user:%040d", i)
		}
		for _, with := range []string{"limit", "limit and nothing", "limit and console"} {
			b.Run(fmt.Sprintf("subjects=%d/%s", subjects, with), func(b *testing.B) {
				engine := testcheck.Must(memory.New(memory.Options{}))
				opts := limit.Options{}
				if with == "limit and nothing" {
					opts.Observe = func(*http.Request, ratelimit.Caller, ratelimit.Decision, error) {}
				}
				if with == "limit and console" {
					opts.Observe = testcheck.Must(console.New(engine, console.Options{})).Observe
				}
				var next atomic.Uint32
				limited := testcheck.Must(limit.New(engine, func(*http.Request) (ratelimit.Caller, error) {
					return ratelimit.Caller{Subject: names[int(next.Add(1))%subjects], Plan: plan}, nil
				}, opts))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
				r := httptest.NewRequest("GET", "/", nil)
				w := httptest.NewRecorder()
				b.ReportAllocs()
				for b.Loop() {
					limited.ServeHTTP(w, r)
				}
			})
		}
	}
}

// BenchmarkCount measures counting alone.
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
