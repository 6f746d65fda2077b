package limit_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var quiet = &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}

// engine returns an embedded engine whose clock is at *at.
func newEngine(t testing.TB, at *time.Time) *memory.Limiter {
	t.Helper()
	l, err := memory.New(memory.Options{Now: func() time.Time { return *at }})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func handler(t testing.TB, l ratelimit.Limiter, c ratelimit.Caller, opts limit.Options, next http.HandlerFunc) http.Handler {
	t.Helper()
	if opts.Errors == nil {
		opts.Errors = quiet
	}
	mw, err := limit.New(l, func(*http.Request) (ratelimit.Caller, error) { return c, nil }, opts)
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
		0: "client_banned", ratelimit.KindAPIKey: "api_key_banned", ratelimit.KindNetwork: "client_banned",
	} {
		h := handler(t, newEngine(t, &at), ratelimit.Caller{Subject: "a", Plan: plan, Kind: kind}, limit.Options{}, ok)
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
		h := quiet.Recover(handler(t, newEngine(t, &at), ratelimit.Caller{Subject: "a", Plan: plan}, limit.Options{}, next))
		w := get(h)
		for field, want := range map[string]string{"Limit": "100", "Remaining": "99", "Reset": "1800057600"} {
			if got := w.Header().Values("X-RateLimit-" + field); len(got) != 1 || got[0] != want {
				t.Errorf("%s: X-RateLimit-%s is %q, want once %q", name, field, got, want)
			}
		}
	}
}

func TestCost(t *testing.T) {
	at := time.Unix(now, 0)
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(10))
	cost := func(r *http.Request) int64 { n, _ := strconv.ParseInt(r.URL.Query().Get("cost"), 10, 64); return n }
	h := handler(t, newEngine(t, &at), ratelimit.Caller{Subject: "a", Plan: plan}, limit.Options{Cost: cost}, ok)
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

// The zero Plan is not valid, and says nothing that could be told.
func TestZeroPlanHasNoFields(t *testing.T) {
	at := time.Unix(now, 0)
	for _, opts := range []limit.Options{{}, {Shadow: true}, {FailOpen: true, Headers: limit.XRateLimit | limit.DraftRateLimit}} {
		opts.Observe = func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, err error) {
			if d.Plan != nil || !errors.Is(err, ratelimit.ErrInvalid) {
				t.Errorf("observed plan %v and error %v", d.Plan, err)
			}
		}
		w := get(handler(t, newEngine(t, &at), ratelimit.Caller{Subject: "a", Plan: new(ratelimit.Plan)}, opts, ok))
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
	limit.XRateLimit.Set(h, &d)
	limit.DraftRateLimit.Set(h, &d)
	if len(h) != 0 {
		t.Errorf("a decision without a plan sets %v", h)
	}
}

func TestNewRefuses(t *testing.T) {
	at := time.Unix(now, 0)
	identify := func(*http.Request) (ratelimit.Caller, error) { return ratelimit.Caller{}, nil }
	var unset *memory.Limiter
	for _, test := range []struct {
		err  error
		says string
	}{
		{second(limit.New(nil, identify, limit.Options{})), "the limiter must not be nil"},
		{second(limit.New(unset, identify, limit.Options{})), "the limiter must not be nil"},
		{second(limit.New(newEngine(t, &at), nil, limit.Options{})), "identify must not be nil"},
		{second(limit.New(broken{}, identify, limit.Options{ChargeIf: limit.NotServerError})), "Options.ChargeIf needs a limiter that is an Adjuster"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.says) {
			t.Errorf("got error %v, want one that says %q", test.err, test.says)
		}
	}
}

func second[T any](_ T, err error) error { return err }
