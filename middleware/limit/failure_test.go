package limit_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// broken is an engine that cannot decide.
type broken struct{ err error }

func (b broken) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, b.err
}

// A brokenAll fails about several charges too.
type brokenAll struct{ broken }

func (b brokenAll) TakeAll(context.Context, []ratelimit.Charge, []ratelimit.Decision) error {
	return b.err
}

func (b brokenAll) Adjust(context.Context, string, *ratelimit.Decision, int64, string) error {
	return b.err
}

// brokenPeeker can neither decide nor peek.
type brokenPeeker struct{ broken }

func (b brokenPeeker) Peek(context.Context, string, *ratelimit.Plan) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, b.err
}

// If the engine fails, FailOpen and Shadow say what happens. Observe gets what the response
// says.
func TestFailure(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerDay(100))
	secret := errors.Join(ratelimit.ErrUnavailable, errors.New("secret address"))
	also := []ratelimit.Charge{{Subject: "b", Plan: plan}}
	for name, c := range map[string]struct {
		limiter ratelimit.Limiter
		also    []ratelimit.Charge
		opts    limit.Options
		status  int
		code    string
		left    string
		wait    string
	}{
		"closed":           {broken{secret}, nil, limit.Options{}, 503, "unavailable", "0", "1"},
		"open":             {broken{secret}, nil, limit.Options{FailOpen: true}, 200, "", "60", ""},
		"shadow":           {broken{secret}, nil, limit.Options{Shadow: true}, 200, "", "60", ""},
		"several, closed":  {brokenAll{broken{secret}}, also, limit.Options{ChargeIf: limit.NotServerError}, 503, "unavailable", "0", "1"},
		"several, open":    {brokenAll{broken{secret}}, also, limit.Options{FailOpen: true, ChargeIf: limit.NotServerError}, 200, "", "60", ""},
		"the service's":    {broken{ratelimit.ErrInvalid}, nil, limit.Options{}, 500, "internal", "0", ""}, // to wait does not mend it
		"the cost as well": {brokenPeeker{broken{secret}}, nil, limit.Options{Cost: func(*http.Request) int64 { return 61 }}, 400, "cost_exceeds_limit", "0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			var seen ratelimit.Decision
			c.opts.Errors = &apierror.Responder{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			c.opts.Observe = func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, err error) {
				if seen = d; err == nil {
					t.Error("no error, although the engine failed")
				}
			}
			w := get(handler(c.limiter, ratelimit.Caller{Subject: "a", Plan: plan, Also: c.also}, c.opts, ok))
			expect(t, w, c.status, c.code, c.left)
			if h := w.Header(); h.Get("Retry-After") != c.wait || h.Get("X-RateLimit-Limit") != "60" {
				t.Errorf("the fields are %v, want the limit 60 and Retry-After %q", h, c.wait)
			}
			if reset, _ := strconv.ParseInt(w.Header().Get("X-RateLimit-Reset"), 10, 64); reset <= time.Now().Unix()-1 || reset > time.Now().Unix()+60 {
				t.Errorf("reset is %d, want the end of this minute", reset)
			}
			if strings.Contains(w.Body.String(), "secret") || c.status == 503 && !strings.Contains(log.String(), "secret address") {
				t.Errorf("the cause belongs into the log (%s) and not into the body (%s)", &log, w.Body)
			}
			if fmt.Sprint(seen.States[0].Remaining) != c.left || c.left == "0" != !seen.Allowed() {
				t.Errorf("Observe was told %v, %d left; want %s", seen.Outcome, seen.States[0].Remaining, c.left)
			}
		})
	}
}

// waiting is a shared engine, which decides nothing about a request whose client has
// cancelled it, or whose call it has cancelled itself.
type waiting struct{}

func (waiting) Take(ctx context.Context, _ string, _ *ratelimit.Plan, _ int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, fmt.Errorf("%w: %w", ratelimit.ErrUnavailable, cmp.Or(ctx.Err(), context.Canceled))
}

// A request that its client has cancelled before it was decided is neither a failure of the
// engine nor served uncharged.
func TestCancelledBeforeTheDecision(t *testing.T) {
	caller := ratelimit.Caller{Subject: "a", Plan: ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60))}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late, end := context.WithDeadline(t.Context(), time.Now())
	defer end()
	for _, tt := range []struct {
		name     string
		ctx      context.Context
		opts     limit.Options
		status   int
		code     string
		observed bool
	}{
		{"closed", gone, limit.Options{}, 499, "client_closed_request", false},
		{"open", gone, limit.Options{FailOpen: true}, 499, "client_closed_request", false},
		{"shadow", gone, limit.Options{Shadow: true}, 200, "", false},
		{"by the engine", t.Context(), limit.Options{}, 503, "unavailable", true},
		{"at the deadline of the service", late, limit.Options{}, 503, "unavailable", true},
		{"open, at the deadline of the service", late, limit.Options{FailOpen: true}, 200, "", true},
	} {
		observed := false
		tt.opts.Observe = func(*http.Request, ratelimit.Caller, ratelimit.Decision, error) { observed = true }
		tt.opts.Errors = quiet
		for asked, identify := range map[string]func(*http.Request) (ratelimit.Caller, error){
			"engine": fixed(caller),
			"identify": func(r *http.Request) (ratelimit.Caller, error) {
				_, err := waiting{}.Take(r.Context(), "", nil, 1)
				return caller, err
			},
		} {
			w := httptest.NewRecorder()
			h := must(limit.New(waiting{}, identify, tt.opts))(http.HandlerFunc(ok))
			h.ServeHTTP(w, httptest.NewRequestWithContext(tt.ctx, "GET", "/", nil))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.code) || observed != tt.observed {
				t.Errorf("%s, %s: %d %s, observed: %v; want %d %s, %v", tt.name, asked, w.Code, w.Body, observed, tt.status, tt.code, tt.observed)
			}
			observed = false
		}
	}
}

// careless is an engine that admits everything.
type careless struct{}

func (careless) Take(_ context.Context, _ string, p *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: p, Cost: cost}, nil
}

// A call that is wrong in itself is never admitted, whatever the engine and the
// failure mode, but in shadow mode.
func TestInvalidCalls(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerDay(100))
	now := time.Unix(now, 0)
	for _, tt := range []struct {
		name   string
		caller ratelimit.Caller
		cost   int64
		status int
		code   string
		is     error
	}{
		{"no plan", ratelimit.Caller{Subject: "a"}, 1, 500, "internal", ratelimit.ErrInvalid},
		{"a plan without quotas", ratelimit.Caller{Subject: "a", Plan: new(ratelimit.Plan)}, 1, 500, "internal", ratelimit.ErrInvalid},
		{"no subject", ratelimit.Caller{Plan: plan}, 1, 500, "internal", ratelimit.ErrInvalid},
		{"cost 0", ratelimit.Caller{Subject: "a", Plan: plan}, 0, 500, "internal", ratelimit.ErrInvalid},
		{"negative cost", ratelimit.Caller{Subject: "a", Plan: plan}, -1, 500, "internal", ratelimit.ErrInvalid},
		{"cost over a limit", ratelimit.Caller{Subject: "a", Plan: plan}, 61, 400, "cost_exceeds_limit", ratelimit.ErrCostExceedsLimit},
		{"cost over all limits", ratelimit.Caller{Subject: "a", Plan: plan}, 1 << 62, 400, "cost_exceeds_limit", ratelimit.ErrCostExceedsLimit},
		{"cost over a limit, banned", ratelimit.Caller{Subject: "banned", Plan: plan}, 61, 400, "cost_exceeds_limit", ratelimit.ErrCostExceedsLimit},
	} {
		for engineName, l := range map[string]ratelimit.Limiter{
			"memory": newEngine(&now), "careless": careless{}, "broken": broken{ratelimit.ErrUnavailable},
		} {
			for _, opts := range []limit.Options{
				{}, {FailOpen: true}, {Shadow: true}, {FailOpen: true, Shadow: true},
			} {
				t.Run(fmt.Sprintf("%s, %s, fail open %t, shadow %t", tt.name, engineName, opts.FailOpen, opts.Shadow), func(t *testing.T) {
					var observed error
					opts.Name = "one" // of all limits on an engine
					opts.Cost = func(*http.Request) int64 { return tt.cost }
					want := tt.caller.Plan == plan
					opts.Observe = func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, err error) {
						if observed = err; (d.Plan != nil) != want {
							t.Errorf("observed the plan %v", d.Plan)
						}
					}
					opts.Headers = limit.XRateLimit | limit.DraftRateLimit
					if b, ok := l.(engine.Banner); ok {
						testcheck.NoError(t, b.Ban(t.Context(), "one/banned", time.Hour, ""))
					}
					w := get(handler(l, tt.caller, opts, ok))
					var body struct{ Code string }
					_ = json.Unmarshal(w.Body.Bytes(), &body)
					status, code := tt.status, tt.code
					if opts.Shadow {
						status, code = 200, ""
					}
					if w.Code != status || body.Code != code {
						t.Errorf("got %d %q, want %d %q", w.Code, body.Code, status, code)
					}
					if !errors.Is(observed, tt.is) {
						t.Errorf("observed the error %v, want one that wraps %v", observed, tt.is)
					}
					if w.Header()["Retry-After"] != nil || w.Header()["X-Ratelimit-Banned"] != nil {
						t.Errorf("the fields are %v: Retry-After or X-RateLimit-Banned, though a retry does not help", w.Header())
					}
					for _, field := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Ratelimit", "Ratelimit-Policy"} {
						if got := w.Header()[field]; (got != nil) != want {
							t.Errorf("%s is %q, want a value: %t", field, got, want)
						}
					}
				})
			}
		}
	}
}

// A wrongEngine returns a decision that no engine may return. Of two charges it makes the
// other one.
type wrongEngine struct {
	d     ratelimit.Decision
	wrong int
}

func (e wrongEngine) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return e.d, nil
}

func (e wrongEngine) TakeAll(_ context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	made := charges[1-e.wrong]
	decisions[e.wrong], decisions[1-e.wrong] = e.d, ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: made.Plan, Cost: made.Cost}
	return nil
}

// What is neither an admission nor a denial that a client can be told is a failure of the
// engine, also of one of two charges. A handler that returns Denial answers with 500.
func TestWrongDecisions(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(100))
	for name, d := range map[string]ratelimit.Decision{
		"none":                        {},
		"no outcome":                  {Plan: plan, Cost: 1},
		"skipped":                     {Outcome: ratelimit.Skipped, Plan: plan, Cost: 1},
		"unknown":                     {Outcome: 77, Plan: plan, Cost: 1},
		"limited without a plan":      {Outcome: ratelimit.Limited, RetryAfter: 1},
		"banned without a plan":       {Outcome: ratelimit.Banned, RetryAfter: 1},
		"limited by no quota":         {Outcome: ratelimit.Limited, Plan: plan, Applicable: 2, Cost: 1, RetryAfter: 1},
		"limited by a negative quota": {Outcome: ratelimit.Limited, Plan: plan, Applicable: -1, Cost: 1, RetryAfter: 1},
		"limited until now":           {Outcome: ratelimit.Limited, Plan: plan, Cost: 1},
		"banned until before now":     {Outcome: ratelimit.Banned, Plan: plan, Cost: 1, RetryAfter: -time.Second},
	} {
		var observed error
		opts := limit.Options{Observe: func(_ *http.Request, _ ratelimit.Caller, _ ratelimit.Decision, err error) { observed = err }}
		for _, also := range [][]ratelimit.Charge{nil, {{Subject: "b", Plan: plan}}} {
			for wrong := range 1 + len(also) {
				caller := ratelimit.Caller{Subject: "a", Plan: plan, Also: also}
				opts.FailOpen = false
				w := get(handler(wrongEngine{d, wrong}, caller, opts, ok))
				if w.Code != 503 || w.Header().Get("Retry-After") != "1" || !errors.Is(observed, ratelimit.ErrUnavailable) {
					t.Errorf("%s: got %d with Retry-After %q, observed %v, want 503 with 1 and an error that wraps ErrUnavailable",
						name, w.Code, w.Header().Get("Retry-After"), observed)
				}
				opts.FailOpen = true
				if w := get(handler(wrongEngine{d, wrong}, caller, opts, ok)); w.Code != 200 {
					t.Errorf("%s, fail open: got %d, want 200", name, w.Code)
				}
			}
		}
		if err := limit.Denial(ratelimit.Caller{}, &d); !errors.Is(err, ratelimit.ErrUnavailable) {
			t.Errorf("%s: Denial returns %v, want an error that wraps ErrUnavailable", name, err)
		}
	}
}

// The log of an invalid call says where to look, for which caller, and what is wrong.
func TestInvalidCallsAreLogged(t *testing.T) {
	for want, c := range map[string]ratelimit.Caller{
		`for \"user:ann\": ratelimit: invalid call: no plan: it is nil, as for a name that a map of plans does not have`: {Subject: "user:ann"},
		`for \"user:ann\": ratelimit: invalid call: no plan: it is the zero Plan, and not one of NewPlan`:                {Subject: "user:ann", Plan: new(ratelimit.Plan)},
		`for \"` + strings.Repeat("a", 199) + `é\": `:                                                                    {Subject: strings.Repeat("a", 199) + "é" + strings.Repeat("a", 9_999_999)},
		`for \"` + strings.Repeat("a", 200) + `\": `:                                                                     {Subject: strings.Repeat("a", 200)},
		`for \"\": ratelimit: invalid call: no subject: the name that usage is counted for is empty`:                     {Plan: tokens},
	} {
		var log bytes.Buffer
		opts := limit.Options{Errors: &apierror.Responder{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
		get(handler(atNow(), c, opts, ok))
		if want := `identify and the Options make an invalid call ` + want; !strings.Contains(log.String(), want) {
			t.Errorf("the log has %q, want %q in it", log.String(), want)
		}
	}
}
