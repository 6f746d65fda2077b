package limit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var tokens = ratelimit.MustPlan("tokens", ratelimit.DefaultPenalty(), ratelimit.PerMinute(100), ratelimit.PerDay(1000))

// A flaky engine fails while down is set. It counts the calls that change usage.
type flaky struct {
	*memory.Limiter
	down    error
	changes int
	during  error // of the context of the last change
}

func (f *flaky) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	if f.changes++; f.down != nil {
		return f.down
	}
	f.during = ctx.Err()
	return f.Limiter.Adjust(ctx, subject, d, units, id)
}

// used returns how much of the minute and of the day a subject has used.
func used(t *testing.T, l *memory.Limiter, subject string) [2]int64 {
	t.Helper()
	wide := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(fixedwindow.MaxUnits), ratelimit.PerDay(fixedwindow.MaxUnits))
	d := must(l.Peek(t.Context(), subject, wide))
	return [2]int64{fixedwindow.MaxUnits - d.States[0].Remaining, fixedwindow.MaxUnits - d.States[1].Remaining}
}

func wantUsed(t *testing.T, l *memory.Limiter, what string, want [2]int64) {
	t.Helper()
	if got := used(t, l, "a"); got != want {
		t.Errorf("%s: used %v, want %v", what, got, want)
	}
}

// reserve sends a request that reserves 40 units, unless opts say otherwise, and returns its
// settlement. work is done by the handler.
func reserve(t *testing.T, l ratelimit.Limiter, c ratelimit.Caller, opts limit.Options, work func(http.ResponseWriter, *limit.Settlement)) (res *limit.Settlement) {
	t.Helper()
	opts.Settle = true
	if opts.Cost == nil {
		opts.Cost = func(*http.Request) int64 { return 40 }
	}
	served := false
	h := handler(l, c, opts, func(w http.ResponseWriter, r *http.Request) {
		served = true
		res = limit.FromContext(r.Context())
		if work != nil {
			work(w, res)
		}
	})
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if !served || res == nil {
		t.Fatalf("served is %t with settlement %v, want that the handler finds one", served, res)
	}
	return res
}

func settle(t *testing.T, res *limit.Settlement, units int64) {
	t.Helper()
	if err := res.Settle(t.Context(), units); err != nil {
		t.Errorf("Settle(%d): %v", units, err)
	}
}
