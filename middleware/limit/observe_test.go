package limit_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Observe gets what the response says, also if the engine could not decide.
func TestObserveGetsWhatTheResponseSays(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerDay(100))
	for name, c := range map[string]struct {
		opts    limit.Options
		status  int
		outcome ratelimit.Outcome
		left    [2]int64
		wait    time.Duration
	}{
		"closed": {limit.Options{}, 503, ratelimit.Limited, [2]int64{0, 0}, time.Second},
		"open":   {limit.Options{FailOpen: true}, 200, ratelimit.Allowed, [2]int64{60, 100}, 0},
		"shadow": {limit.Options{Shadow: true}, 200, ratelimit.Allowed, [2]int64{60, 100}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var seen ratelimit.Decision
			c.opts.Observe = func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, err error) {
				if err == nil {
					t.Error("no error, although the engine failed")
				}
				seen = d
			}
			down := broken{ratelimit.ErrUnavailable}
			if w := get(handler(t, down, ratelimit.Caller{Subject: "a", Plan: plan}, c.opts, ok)); w.Code != c.status {
				t.Errorf("answered %d, want %d", w.Code, c.status)
			}
			left := [2]int64{seen.States[0].Remaining, seen.States[1].Remaining}
			if seen.Outcome != c.outcome || left != c.left || seen.RetryAfter != c.wait {
				t.Errorf("Observe was told %v, %v left, wait %v; want %v, %v, %v",
					seen.Outcome, left, seen.RetryAfter, c.outcome, c.left, c.wait)
			}
		})
	}
}

// brokenPeeker can neither decide nor peek.
type brokenPeeker struct{ broken }

func (b brokenPeeker) Peek(context.Context, string, *ratelimit.Plan) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, b.err
}

// The response to a request that costs too much says what is left. If the engine cannot
// tell, the response says that nothing is left.
func TestCostExceedsLimitWhileTheEngineIsDown(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60))
	opts := limit.Options{Cost: func(*http.Request) int64 { return 61 }}
	w := get(handler(t, brokenPeeker{broken{ratelimit.ErrUnavailable}}, ratelimit.Caller{Subject: "a", Plan: plan}, opts, ok))
	expect(t, w, 400, "cost_exceeds_limit", "0")
	if limit := w.Header().Get("X-RateLimit-Limit"); limit != "60" {
		t.Errorf("the limit is %q, want 60", limit)
	}
}

// The text names a quota that the cost is over, not one that it is equal to.
func TestCostExceedsLimitNamesTheQuota(t *testing.T) {
	at := time.Unix(now, 0)
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerDay(50))
	opts := limit.Options{Cost: func(*http.Request) int64 { return 60 }}
	w := get(handler(t, newEngine(t, &at), ratelimit.Caller{Subject: "a", Plan: plan}, opts, ok))
	if want := "your plan allows at most 50 per day."; !strings.Contains(w.Body.String(), want) {
		t.Errorf("body %s, want %q", w.Body, want)
	}
}

// The log of an invalid call says where to look, for which caller, and what is wrong.
func TestInvalidCallsAreLogged(t *testing.T) {
	at := time.Unix(now, 0)
	for want, c := range map[string]ratelimit.Caller{
		`for \"user:ann\": ratelimit: invalid call: no plan: it is nil, as for a name that a map of plans does not have`: {Subject: "user:ann"},
		`for \"user:ann\": ratelimit: invalid call: no plan: it is the zero Plan, and not one of NewPlan`:                {Subject: "user:ann", Plan: new(ratelimit.Plan)},
		`for \"\": ratelimit: invalid call: no subject: the name that usage is counted for is empty`:                     {Plan: tokens},
	} {
		var log bytes.Buffer
		opts := limit.Options{Errors: &apierror.Responder{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
		get(handler(t, newEngine(t, &at), c, opts, ok))
		if want := `identify or Options.Cost returned an invalid value ` + want; !strings.Contains(log.String(), want) {
			t.Errorf("the log has %q, want %q in it", log.String(), want)
		}
	}
}
