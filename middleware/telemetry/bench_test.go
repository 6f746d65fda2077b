package telemetry_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/middleware/telemetry"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// BenchmarkHooks measures what each hook adds to a request that is not traced.
func BenchmarkHooks(b *testing.B) {
	c := collect(b)
	r := httptest.NewRequest("GET", "/", nil)
	w := httptest.NewRecorder()
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	caller := ratelimit.Caller{Subject: "owner:ann", Plan: free}

	b.Run("decision", func(b *testing.B) {
		d := decided(free, ratelimit.Allowed, 0, 59)
		b.ReportAllocs()
		for b.Loop() {
			c.Decision(r, caller, d, nil)
		}
	})
	for name, h := range map[string]http.Handler{
		"authentication": c.Authentication(next), "panics": c.Panics(next), "route": telemetry.Route(telemetry.RouteOptions{})(next),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
	l := must(memory.New(memory.Options{}))
	roomy := ratelimit.MustPlan("roomy", ratelimit.Penalty{}, ratelimit.PerDay(fixedwindow.MaxUnits))
	for name, t := range map[string]*telemetry.Telemetry{"take": c.Telemetry, "take without telemetry": nil} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := t.Take(b.Context(), l, "owner:ann", roomy, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
