package wire

import (
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// free is the plan of most answers.
var free = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))

// quiet writes errors without a log.
var quiet = &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}

// pets serves the resource behind the middlewares.
var pets = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `[{"id":1,"name":"Rex"}]`)
})

// must returns v, or fails the test.
func must[V any](t *testing.T) func(v V, err error) V {
	return func(v V, err error) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// newEngine returns an engine on the clock of the bubble.
func newEngine(t *testing.T) *memory.Limiter {
	return must[*memory.Limiter](t)(memory.New(memory.Options{Now: time.Now}))
}

// owner is an owner of API keys with a plan.
func owner(plan *ratelimit.Plan) ratelimit.Caller {
	return ratelimit.Caller{Subject: "owner:ann", Plan: plan, Kind: ratelimit.KindAPIKey}
}

// limited returns pets behind a limiter for an owner that has used some units.
func limited(t *testing.T, plan *ratelimit.Plan, used int64, opts limit.Options) http.Handler {
	engine := newEngine(t)
	use(t, engine, "owner:ann", plan, used)
	return counted(t, engine, owner(plan), opts)
}

// use charges units to a subject under a plan, one by one.
func use(t *testing.T, l ratelimit.Limiter, subject string, plan *ratelimit.Plan, units int64) {
	for range units {
		if d, err := l.Take(t.Context(), subject, plan, 1); err != nil || !d.Allowed() {
			t.Fatalf("a unit of %s could not be used: %v, %v", subject, d.Outcome, err)
		}
	}
}

// counted returns pets behind a limiter for one caller.
func counted(t *testing.T, l ratelimit.Limiter, c ratelimit.Caller, opts limit.Options) http.Handler {
	return limiter(t, l, c, opts)(pets)
}

// limiter returns a limiter for one caller.
func limiter(t *testing.T, l ratelimit.Limiter, c ratelimit.Caller, opts limit.Options) func(http.Handler) http.Handler {
	opts.Errors = quiet
	identify := func(*http.Request) (ratelimit.Caller, error) { return c, nil }
	return must[func(http.Handler) http.Handler](t)(limit.New(l, identify, opts))
}

// struck returns pets behind a limiter for a caller of a kind that has sent so many
// requests after it was limited, and after the grace.
func struck(t *testing.T, kind ratelimit.Kind, strikes int) http.Handler {
	c := owner(free)
	c.Kind = kind
	h := counted(t, newEngine(t), c, limit.Options{})
	spend(h, 61)
	time.Sleep(3 * time.Second)
	spend(h, strikes)
	return h
}
