package ratelimit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var quiet = &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}

// engine returns an embedded engine whose clock is at *at.
func engine(t testing.TB, at *time.Time) *memory.Limiter {
	t.Helper()
	l, err := memory.New(memory.Options{Now: func() time.Time { return *at }})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func handler(t testing.TB, l ratelimit.Limiter, c ratelimit.Caller, opts ratelimit.Options, next http.HandlerFunc) http.Handler {
	t.Helper()
	if opts.Errors == nil {
		opts.Errors = quiet
	}
	mw, err := ratelimit.New(l, func(*http.Request) (ratelimit.Caller, error) { return c, nil }, opts)
	if err != nil {
		t.Fatal(err)
	}
	return mw(next)
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

func get(h http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	return w
}

// expect checks status, code and the number of remaining requests.
func expect(t *testing.T, w *httptest.ResponseRecorder, status int, code, remaining string) {
	t.Helper()
	var body struct{ Code string }
	_ = json.Unmarshal(w.Body.Bytes(), &body)
	if w.Code != status || body.Code != code || w.Header().Get("X-RateLimit-Remaining") != remaining {
		t.Fatalf("got %d %q with %q remaining, want %d %q with %q",
			w.Code, body.Code, w.Header().Get("X-RateLimit-Remaining"), status, code, remaining)
	}
}

func TestMiddleware(t *testing.T) {
	at := time.Unix(now, 0)
	p := ratelimit.Penalty{Strikes: 2, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Hour}
	plan := ratelimit.MustPlan("small", p, ratelimit.PerHour(2), ratelimit.PerDay(100))
	for kind, code := range map[ratelimit.Kind]string{
		ratelimit.KindClient: "client_banned", ratelimit.KindAPIKey: "api_key_banned", ratelimit.KindNetwork: "client_banned",
	} {
		h := handler(t, engine(t, &at), ratelimit.Caller{Subject: "a", Plan: plan, Kind: kind}, ratelimit.Options{}, ok)
		expect(t, get(h), 200, "", "1")
		expect(t, get(h), 200, "", "0")
		for _, left := range []string{"More than 1 further request before", "Any further request before"} {
			w := get(h)
			expect(t, w, 429, "rate_limit_exceeded", "0")
			if !strings.Contains(w.Body.String(), left) || !strings.Contains(w.Body.String(), "2 requests per hour") {
				t.Errorf("the body says neither the limit nor %q: %s", left, w.Body)
			}
			if got := w.Header().Get("Retry-After"); got != "3600" {
				t.Errorf("Retry-After is %q, want the rest of the hour", got)
			}
		}
		w := get(h)
		expect(t, w, 429, code, "0")
		if got := w.Header().Get("Retry-After"); got != "3600" {
			t.Errorf("Retry-After is %q, want 3600, since the hour outlasts the ban", got)
		}
	}
}

func TestFieldsOnEveryResponse(t *testing.T) {
	at := time.Unix(now, 0)
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(100))
	for name, next := range map[string]http.HandlerFunc{
		"200":     ok,
		"304":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) },
		"404":     http.NotFound,
		"500":     func(w http.ResponseWriter, r *http.Request) { quiet.Respond(w, r, errors.New("secret")) },
		"a panic": func(http.ResponseWriter, *http.Request) { panic("secret") },
	} {
		h := quiet.Recover(handler(t, engine(t, &at), ratelimit.Caller{Subject: "a", Plan: plan}, ratelimit.Options{}, next))
		w := get(h)
		for field, want := range map[string]string{"Limit": "100", "Remaining": "99", "Reset": "1800057600"} {
			if got := w.Header().Values("X-RateLimit-" + field); len(got) != 1 || got[0] != want {
				t.Errorf("%s: X-RateLimit-%s is %q, want once %q", name, field, got, want)
			}
		}
	}
}

// broken is an engine that cannot decide.
type broken struct{ err error }

func (b broken) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, b.err
}

func TestFailure(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerDay(100))
	down := broken{errors.Join(ratelimit.ErrUnavailable, errors.New("secret address"))}
	caller := ratelimit.Caller{Subject: "a", Plan: plan}

	var log bytes.Buffer
	rs := &apierror.Responder{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	w := get(handler(t, down, caller, ratelimit.Options{Errors: rs}, ok))
	expect(t, w, 503, "unavailable", "0")
	if w.Header().Get("Retry-After") != "1" || w.Header().Get("X-RateLimit-Limit") != "60" {
		t.Errorf("closed: the fields are %v", w.Header())
	}
	if strings.Contains(w.Body.String(), "secret") || !strings.Contains(log.String(), "secret address") {
		t.Errorf("the cause belongs into the log (%s) and not into the body (%s)", &log, w.Body)
	}

	w = get(handler(t, down, caller, ratelimit.Options{OnFailure: ratelimit.FailOpen}, ok))
	expect(t, w, 200, "", "60")
	if reset, _ := strconv.ParseInt(w.Header().Get("X-RateLimit-Reset"), 10, 64); reset <= time.Now().Unix() || reset > time.Now().Unix()+60 {
		t.Errorf("open: reset is %d, want the end of this minute", reset)
	}
	if w.Header().Get("Retry-After") != "" {
		t.Error("open: an admitted request has Retry-After")
	}

	w = get(handler(t, broken{ratelimit.ErrInvalid}, caller, ratelimit.Options{}, ok))
	expect(t, w, 500, "internal", "0")
	if w.Header().Get("Retry-After") != "" {
		t.Error("a mistake of the service is answered with Retry-After, though to wait does not mend it")
	}
}

func TestExempt(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(1))
	for _, c := range []ratelimit.Caller{{Kind: ratelimit.KindExempt}, {Kind: ratelimit.KindExempt, Subject: "a", Plan: plan}} {
		h := handler(t, broken{errors.New("asked")}, c, ratelimit.Options{}, ok)
		expect(t, get(h), 200, "", "")
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
	} {
		for engineName, l := range map[string]ratelimit.Limiter{
			"memory": engine(t, &now), "careless": careless{}, "broken": broken{ratelimit.ErrUnavailable},
		} {
			for _, opts := range []ratelimit.Options{
				{OnFailure: ratelimit.FailClosed}, {OnFailure: ratelimit.FailOpen}, {Shadow: true}, {OnFailure: ratelimit.FailOpen, Shadow: true},
			} {
				t.Run(fmt.Sprintf("%s, %s, on failure %d, shadow %t", tt.name, engineName, opts.OnFailure, opts.Shadow), func(t *testing.T) {
					var observed error
					opts.Cost = func(*http.Request) int64 { return tt.cost }
					opts.Observe = func(_ *http.Request, _ ratelimit.Caller, _ ratelimit.Decision, err error) { observed = err }
					opts.Headers = ratelimit.XRateLimit | ratelimit.DraftRateLimit
					w := get(handler(t, l, tt.caller, opts, ok))
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
					if w.Header().Get("Retry-After") != "" {
						t.Error("the response has Retry-After, though a retry does not help")
					}
					want := tt.caller.Plan == plan
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

// A wrongEngine returns a decision that no engine may return.
type wrongEngine struct{ d ratelimit.Decision }

func (e wrongEngine) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return e.d, nil
}

// What is neither an admission nor a denial that a client can be told is a failure of the
// engine.
func TestWrongDecisions(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(100))
	for name, d := range map[string]ratelimit.Decision{
		"none":                        {},
		"no outcome":                  {Plan: plan, Cost: 1},
		"spared":                      {Outcome: ratelimit.Spared, Plan: plan, Cost: 1},
		"unknown":                     {Outcome: 77, Plan: plan, Cost: 1},
		"limited without a plan":      {Outcome: ratelimit.Limited, RetryAfter: 1},
		"banned without a plan":       {Outcome: ratelimit.Banned, RetryAfter: 1},
		"limited by no quota":         {Outcome: ratelimit.Limited, Plan: plan, Applicable: 2, Cost: 1, RetryAfter: 1},
		"limited by a negative quota": {Outcome: ratelimit.Limited, Plan: plan, Applicable: -1, Cost: 1, RetryAfter: 1},
		"limited until now":           {Outcome: ratelimit.Limited, Plan: plan, Cost: 1},
		"banned until before now":     {Outcome: ratelimit.Banned, Plan: plan, Cost: 1, RetryAfter: -time.Second},
	} {
		var observed error
		opts := ratelimit.Options{Observe: func(_ *http.Request, _ ratelimit.Caller, _ ratelimit.Decision, err error) { observed = err }}
		caller := ratelimit.Caller{Subject: "a", Plan: plan}
		w := get(handler(t, wrongEngine{d}, caller, opts, ok))
		if w.Code != 503 || w.Header().Get("Retry-After") != "1" || !errors.Is(observed, ratelimit.ErrUnavailable) {
			t.Errorf("%s: got %d with Retry-After %q, observed %v, want 503 with 1 and an error that wraps ErrUnavailable",
				name, w.Code, w.Header().Get("Retry-After"), observed)
		}
		opts.OnFailure = ratelimit.FailOpen
		if w := get(handler(t, wrongEngine{d}, caller, opts, ok)); w.Code != 200 {
			t.Errorf("%s, fail open: got %d, want 200", name, w.Code)
		}
	}
}

// The client learns what its request costs and what its plan allows, and the log
// has it as a mistake of the client. The fields say what is left.
func TestCostExceedsLimit(t *testing.T) {
	at := time.Unix(now, 0)
	var log bytes.Buffer
	cost := int64(1)
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerDay(100))
	h := handler(t, engine(t, &at), ratelimit.Caller{Subject: "a", Plan: plan}, ratelimit.Options{
		Cost:   func(*http.Request) int64 { return cost },
		Errors: &apierror.Responder{Logger: slog.New(slog.NewTextHandler(&log, nil))},
	}, ok)
	get(h)
	cost = 120
	w := get(h)
	expect(t, w, 400, "cost_exceeds_limit", "59")
	if want := "This request costs 120 units, but your plan allows at most 60 per minute."; !strings.Contains(w.Body.String(), want) {
		t.Errorf("body %s, want %q", w.Body, want)
	}
	if got := log.String(); !strings.Contains(got, "level=INFO") || !strings.Contains(got, "cost 120, limit 60/minute") {
		t.Errorf("log %q, want the cost and the limit at level INFO", got)
	}
}

func TestCost(t *testing.T) {
	at := time.Unix(now, 0)
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(10))
	cost := func(r *http.Request) int64 { n, _ := strconv.ParseInt(r.URL.Query().Get("cost"), 10, 64); return n }
	h := handler(t, engine(t, &at), ratelimit.Caller{Subject: "a", Plan: plan}, ratelimit.Options{Cost: cost}, ok)
	for _, step := range []struct {
		cost, remaining string
		status          int
	}{{"7", "3", 200}, {"4", "3", 429}, {"3", "0", 200}} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/?cost="+step.cost, nil))
		if w.Code != step.status || w.Header().Get("X-RateLimit-Remaining") != step.remaining {
			t.Errorf("cost %s: got %d with %s remaining, want %d with %s",
				step.cost, w.Code, w.Header().Get("X-RateLimit-Remaining"), step.status, step.remaining)
		}
	}
}

func TestShadow(t *testing.T) {
	at := time.Unix(now, 0)
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(1))
	var outcomes []ratelimit.Outcome
	h := handler(t, engine(t, &at), ratelimit.Caller{Subject: "a", Plan: plan}, ratelimit.Options{
		Shadow: true,
		Observe: func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, _ error) {
			outcomes = append(outcomes, d.Outcome)
		},
	}, ok)
	for range 2 {
		w := get(h)
		expect(t, w, 200, "", "0")
		if got, there := w.Header()["Retry-After"]; there {
			t.Errorf("a request that went on has Retry-After %q", got)
		}
	}
	if len(outcomes) != 2 || outcomes[0] != ratelimit.Allowed || outcomes[1] != ratelimit.Limited {
		t.Errorf("observed %v, want allowed and limited", outcomes)
	}
}

// A plan that is tried beside the one in force must not speak for it, on
// whichever side of it the shadow stands.
func TestShadowLeavesTheFieldsOfTheLimitInForce(t *testing.T) {
	at := time.Unix(now, 0)
	l := engine(t, &at)
	inForce := ratelimit.Caller{Subject: "a", Plan: ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(10))}
	trial := ratelimit.Caller{Subject: "trial:a", Plan: ratelimit.MustPlan("q", ratelimit.Penalty{}, ratelimit.PerHour(3))}
	enforce := func(next http.Handler) http.Handler {
		return handler(t, l, inForce, ratelimit.Options{Headers: ratelimit.XRateLimit | ratelimit.DraftRateLimit}, next.ServeHTTP)
	}
	shadow := func(next http.Handler) http.Handler {
		return handler(t, l, trial, ratelimit.Options{Headers: ratelimit.XRateLimit | ratelimit.DraftRateLimit, Shadow: true}, next.ServeHTTP)
	}
	for i, h := range []http.Handler{enforce(shadow(http.HandlerFunc(ok))), shadow(enforce(http.HandlerFunc(ok)))} {
		w := get(h)
		expect(t, w, 200, "", strconv.Itoa(9-i))
		if got := w.Header().Get("RateLimit-Policy"); got != `"day";q=10;w=86400` {
			t.Errorf("RateLimit-Policy is %q, want that of the plan in force", got)
		}
	}
}

// Shadow mode passes on what the engine cannot decide, and neither counts strikes
// nor bans.
func TestShadowIsHarmless(t *testing.T) {
	at := time.Unix(now, 0)
	p := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	caller := ratelimit.Caller{Subject: "a", Plan: ratelimit.MustPlan("p", p, ratelimit.PerMinute(1))}
	l := engine(t, &at)
	h := handler(t, l, caller, ratelimit.Options{
		Shadow: true,
		Observe: func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, _ error) {
			if d.Struck || d.BanStarted {
				t.Errorf("in shadow mode: Struck %v and BanStarted %v, want neither", d.Struck, d.BanStarted)
			}
		},
	}, ok)
	for range 20 {
		expect(t, get(h), 200, "", "0")
	}
	if bans, err := l.Bans(t.Context()); err != nil || len(bans) != 0 {
		t.Errorf("shadow mode started the bans %v (%v)", bans, err)
	}
	d, err := l.Peek(t.Context(), caller.Subject, caller.Plan)
	if err != nil || d.StrikesLeft != 1 {
		t.Errorf("after shadow mode %d strikes are left (%v), want all 1", d.StrikesLeft, err)
	}

	down := errors.Join(ratelimit.ErrUnavailable, errors.New("connection refused"))
	var observed error
	h = handler(t, broken{down}, caller, ratelimit.Options{Shadow: true,
		Observe: func(_ *http.Request, _ ratelimit.Caller, _ ratelimit.Decision, err error) { observed = err }}, ok)
	w := get(h)
	expect(t, w, 200, "", "1")
	if w.Header().Get("Retry-After") != "" || !errors.Is(observed, ratelimit.ErrUnavailable) {
		t.Errorf("engine down: fields %v, observed %v", w.Header(), observed)
	}
}

// The zero Plan is not valid, and says nothing that could be told.
func TestZeroPlanHasNoFields(t *testing.T) {
	at := time.Unix(now, 0)
	for _, opts := range []ratelimit.Options{{}, {Shadow: true}, {OnFailure: ratelimit.FailOpen, Headers: ratelimit.XRateLimit | ratelimit.DraftRateLimit}} {
		opts.Observe = func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, err error) {
			if d.Plan != nil || !errors.Is(err, ratelimit.ErrInvalid) {
				t.Errorf("observed plan %v and error %v", d.Plan, err)
			}
		}
		w := get(handler(t, engine(t, &at), ratelimit.Caller{Subject: "a", Plan: new(ratelimit.Plan)}, opts, ok))
		for _, field := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Reset", "Ratelimit", "Ratelimit-Policy"} {
			if got, there := w.Header()[field]; there {
				t.Errorf("%+v: %s is %q, want none", opts, field, got)
			}
		}
	}
}

func TestFieldsWithoutPlan(t *testing.T) {
	h := http.Header{}
	var d ratelimit.Decision
	d.SetHeaders(h)
	d.SetDraftHeaders(h)
	if len(h) != 0 {
		t.Errorf("a decision without a plan sets %v", h)
	}
}

func TestRefund(t *testing.T) {
	at := time.Unix(now, 0)
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(10))
	status, panics := 200, false
	h := handler(t, engine(t, &at), ratelimit.Caller{Subject: "a", Plan: plan}, ratelimit.Options{Refund: true},
		func(w http.ResponseWriter, _ *http.Request) {
			if panics {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(status)
		})
	expect(t, get(h), 200, "", "9")
	status = 404
	expect(t, get(h), 404, "", "8")
	status = 503
	expect(t, get(h), 503, "", "7")
	panics = true
	func() {
		defer func() {
			if recover() != http.ErrAbortHandler {
				t.Error("the panic did not go on")
			}
		}()
		get(h)
	}()
	status, panics = 200, false
	expect(t, get(h), 200, "", "7")

	status = 500
	ctx, hangUp := context.WithCancel(context.Background())
	hangUp()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
	status = 200
	expect(t, get(h), 200, "", "5") // the abandoned request was not refunded
}

func TestNewRefuses(t *testing.T) {
	at := time.Unix(now, 0)
	identify := func(*http.Request) (ratelimit.Caller, error) { return ratelimit.Caller{}, nil }
	for says, err := range map[string]error{
		"the limiter must not be nil": second(ratelimit.New(nil, identify, ratelimit.Options{})),
		"identify must not be nil":    second(ratelimit.New(engine(t, &at), nil, ratelimit.Options{})),
		"Options.Refund":              second(ratelimit.New(broken{}, identify, ratelimit.Options{Refund: true})),
		"Options.OnFailure":           second(ratelimit.New(engine(t, &at), identify, ratelimit.Options{OnFailure: 7})),
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got error %v, want one that says %q", err, says)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// nothing is a ResponseWriter that allocates nothing.
type nothing struct{ h http.Header }

func (n nothing) Header() http.Header         { return n.h }
func (n nothing) Write(p []byte) (int, error) { return len(p), nil }
func (n nothing) WriteHeader(int)             {}

func BenchmarkMiddleware(b *testing.B) {
	roomy := ratelimit.MustPlan("roomy", ratelimit.DefaultPenalty(), ratelimit.PerMinute(ratelimit.MaxLimit), ratelimit.PerDay(ratelimit.MaxLimit))
	tight := ratelimit.MustPlan("tight", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1), ratelimit.PerDay(10))
	everybody := []ratelimit.Charge{{Subject: "everybody, under a name of just as many bytes", Plan: roomy}}
	bare := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, bench := range []struct {
		name string
		plan *ratelimit.Plan
		also []ratelimit.Charge
	}{{"bare", nil, nil}, {"allowed", roomy, nil}, {"denied", tight, nil}, {"allowed, two subjects", roomy, everybody}, {"denied, two subjects", tight, everybody}} {
		b.Run(bench.name, func(b *testing.B) {
			l, err := memory.New(memory.Options{})
			if err != nil {
				b.Fatal(err)
			}
			h := http.Handler(bare)
			if bench.plan != nil {
				h = handler(b, l, ratelimit.Caller{Subject: "owner-of-a-key-whose-name-has-45-characters-x", Plan: bench.plan, Also: bench.also}, ratelimit.Options{}, bare)
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
