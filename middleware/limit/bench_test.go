package limit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// nothing is a ResponseWriter that allocates nothing.
type nothing struct{ h http.Header }

func (n nothing) Header() http.Header         { return n.h }
func (n nothing) Write(p []byte) (int, error) { return len(p), nil }
func (n nothing) WriteHeader(int)             {}

func BenchmarkMiddleware(b *testing.B) {
	roomy := ratelimit.MustPlan("roomy", ratelimit.DefaultPenalty(), ratelimit.PerMinute(fixedwindow.MaxUnits), ratelimit.PerDay(fixedwindow.MaxUnits))
	tight := ratelimit.MustPlan("tight", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1), ratelimit.PerDay(10))
	everybody := []ratelimit.Charge{{Subject: "everybody, under a name of just as many bytes", Plan: roomy}}
	bare := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, bench := range []struct {
		name string
		plan *ratelimit.Plan
		also []ratelimit.Charge
	}{{"bare", nil, nil}, {"allowed", roomy, nil}, {"denied", tight, nil}, {"allowed, two subjects", roomy, everybody}, {"denied, two subjects", tight, everybody}} {
		b.Run(bench.name, func(b *testing.B) {
			l := must(memory.New(memory.Options{}))
			h := http.Handler(bare)
			if bench.plan != nil {
				h = handler(l, ratelimit.Caller{Subject: "owner-of-a-key-whose-name-has-45-characters-x", Plan: bench.plan, Also: bench.also}, limit.Options{}, bare)
			}
			w, r := nothing{http.Header{}}, httptest.NewRequest("GET", "/", nil)
			b.ReportAllocs()
			for b.Loop() {
				clear(w.h)
				h.ServeHTTP(w, r)
			}
		})
	}
}
