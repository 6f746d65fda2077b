package limit_test

import (
	"bytes"
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

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var quiet = &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}

// newEngine returns an embedded engine whose clock is at *at.
func newEngine(at *time.Time) *memory.Limiter {
	return must(memory.New(memory.Options{Now: func() time.Time { return *at }}))
}

// atNow returns one whose clock stands at now.
func atNow() *memory.Limiter {
	at := time.Unix(now, 0)
	return newEngine(&at)
}

func handler(l ratelimit.Limiter, c ratelimit.Caller, opts limit.Options, next http.HandlerFunc) http.Handler {
	if opts.Errors == nil {
		opts.Errors = quiet
	}
	mw := must(limit.New(l, func(*http.Request) (ratelimit.Caller, error) { return c, nil }, opts))
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

func TestFieldsOnEveryResponse(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(100))
	for name, next := range map[string]http.HandlerFunc{
		"200":     ok,
		"304":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) },
		"404":     http.NotFound,
		"500":     func(w http.ResponseWriter, r *http.Request) { quiet.Respond(w, r, errors.New("secret")) },
		"a panic": func(http.ResponseWriter, *http.Request) { panic("secret") },
	} {
		h := quiet.Recover(handler(atNow(), ratelimit.Caller{Subject: "a", Plan: plan}, limit.Options{}, next))
		w := get(h)
		for field, want := range map[string]string{"Limit": "100", "Remaining": "99", "Reset": "1800057600"} {
			if got := w.Header().Values("X-RateLimit-" + field); len(got) != 1 || got[0] != want {
				t.Errorf("%s: X-RateLimit-%s is %q, want once %q", name, field, got, want)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	identify := func(*http.Request) (ratelimit.Caller, error) { return ratelimit.Caller{}, nil }
	var unset *memory.Limiter
	for _, test := range []struct {
		err  error
		says string
	}{
		{second(limit.New(nil, identify, limit.Options{})), "the limiter must not be nil"},
		{second(limit.New(unset, identify, limit.Options{})), "the limiter must not be nil"},
		{second(limit.New(&memory.Limiter{}, identify, limit.Options{})), "the limiter must not be nil or the zero memory.Limiter"},
		{second(limit.New(atNow(), nil, limit.Options{})), "identify must not be nil"},
		{second(limit.New(broken{}, identify, limit.Options{ChargeIf: limit.NotServerError})), "Options.ChargeIf needs a limiter that is an Adjuster"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.says) {
			t.Errorf("got error %v, want one that says %q", test.err, test.says)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// If identify fails, the service's own error is the response, in every failure mode.
// Nothing is counted or observed. Shadow mode serves the request.
func TestIdentifyFails(t *testing.T) {
	public := apierror.New(http.StatusForbidden, "no_such_tenant", "There is no such tenant.")
	private := errors.New("dial tcp 192.0.2.7:5432")
	for _, tt := range []struct {
		name   string
		err    error
		opts   limit.Options
		status int
		code   string
	}{
		{"a public error", public, limit.Options{}, 403, "no_such_tenant"},
		{"a wrapped public error", public.Wrap(private), limit.Options{}, 403, "no_such_tenant"},
		{"a private error", private, limit.Options{}, 500, "internal"},
		{"a private error, fail open", private, limit.Options{FailOpen: true}, 500, "internal"},
		{"a public error in shadow mode", public, limit.Options{Shadow: true}, 200, ""},
		{"a private error in shadow mode", private, limit.Options{Shadow: true}, 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			tt.opts.Errors = &apierror.Responder{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			tt.opts.Observe = func(*http.Request, ratelimit.Caller, ratelimit.Decision, error) { t.Error("Observe was called") }
			// A caller beside an error is not admitted.
			mw := must(limit.New(broken{errors.New("asked")}, func(*http.Request) (ratelimit.Caller, error) {
				return ratelimit.Caller{Subject: "a", Plan: ratelimit.UnlimitedPlan("")}, tt.err
			}, tt.opts))
			w := get(mw(http.HandlerFunc(ok)))
			expect(t, w, tt.status, tt.code, "")
			if fields := rateFields(w.Header()); fields != nil {
				t.Errorf("the response has %q, though nothing was decided", fields)
			}
			if strings.Contains(w.Body.String(), "192.0.2.7") {
				t.Errorf("the response shows a private error: %s", w.Body)
			}
			if w.Code == 500 && !strings.Contains(log.String(), "limit: identify: dial tcp") {
				t.Errorf("the log has %q, want the error of identify", &log)
			}
		})
	}
}

const everyHeader = limit.XRateLimit | limit.DraftRateLimit

// A suspended caller gets 403, is not told to retry, and is never struck or banned.
func TestSuspendedPlan(t *testing.T) {
	caller := ratelimit.Caller{Subject: "owner:17", Plan: ratelimit.SuspendedPlan("debtor")}
	var observed []ratelimit.Decision
	observe := func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, err error) {
		if err != nil {
			t.Errorf("observed the error %v, want a decision", err)
		}
		observed = append(observed, d)
	}
	// The plan alone decides, so an engine that is down makes no difference.
	down := broken{errors.New("asked")}
	for _, set := range []limit.HeaderSet{0, everyHeader, limit.NoHeaders} {
		for _, open := range []bool{false, true} {
			h := handler(down, caller, limit.Options{Headers: set, FailOpen: open, Observe: observe}, ok)
			w := get(h)
			want := []string{"X-Ratelimit-Limit: 0", "X-Ratelimit-Remaining: 0"}
			if set == limit.NoHeaders {
				want = nil
			}
			if diff := cmp.Diff(want, rateFields(w.Header())); diff != "" {
				t.Errorf("headers %d (-want +got):\n%s", set, diff)
			}
			want403 := `{"code":"plan_suspended","message":"Your plan is suspended and allows no requests. Contact the operator of this service.","status":403}`
			if w.Code != 403 || w.Body.String() != want403+"\n" {
				t.Errorf("got %d %s, want 403 %s", w.Code, w.Body, want403)
			}
		}
	}
	h := handler(down, caller, limit.Options{Shadow: true, Observe: observe}, ok)
	expect(t, get(h), 200, "", "0")
	if len(observed) != 7 {
		t.Errorf("observed %d decisions, want 7", len(observed))
	}
	for _, d := range observed {
		if d.Outcome != ratelimit.Suspended || d.Struck || d.Allowed() {
			t.Errorf("observed %+v, want suspended and no strike", d)
		}
	}
}

// An unlimited caller is admitted and observed, and has nothing counted or refunded.
func TestUnlimitedPlan(t *testing.T) {
	caller := ratelimit.Caller{Subject: "owner:17", Plan: ratelimit.UnlimitedPlan("tester")}
	observed := 0
	opts := limit.Options{
		Headers: everyHeader, ChargeIf: limit.NotServerError,
		Cost: func(*http.Request) int64 { return 1 << 40 },
		Observe: func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, err error) {
			if observed++; err != nil || d.Outcome != ratelimit.Allowed || d.Plan != caller.Plan {
				t.Errorf("observed %+v and error %v, want allowed under the plan", d, err)
			}
		},
	}
	l := refunder{refunds: nil} // a refund would block
	h := handler(l, caller, opts, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	for range 3 {
		w := get(h)
		if fields := rateFields(w.Header()); w.Code != 503 || fields != nil {
			t.Errorf("got %d with %q, want the handler's 503 without fields of a limit", w.Code, fields)
		}
	}
	if observed != 3 {
		t.Errorf("observed %d decisions, want 3", observed)
	}
}

// A plan that is tried beside the one in force must not speak for it, on
// whichever side of it the shadow stands.
func TestShadowLeavesTheFieldsOfTheLimitInForce(t *testing.T) {
	l := atNow()
	inForce := ratelimit.Caller{Subject: "a", Plan: ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(10))}
	trial := ratelimit.Caller{Subject: "a", Plan: ratelimit.MustPlan("q", ratelimit.Penalty{}, ratelimit.PerHour(3))}
	headers := limit.XRateLimit | limit.DraftRateLimit
	enforce := func(next http.Handler) http.Handler {
		return handler(l, inForce, limit.Options{Name: "force", Headers: headers}, next.ServeHTTP)
	}
	shadow := func(next http.Handler) http.Handler {
		return handler(l, trial, limit.Options{Name: "trial", Headers: limit.XRateLimit | limit.DraftRateLimit, Shadow: true}, next.ServeHTTP)
	}
	for i, h := range []http.Handler{enforce(shadow(http.HandlerFunc(ok))), shadow(enforce(http.HandlerFunc(ok)))} {
		w := get(h)
		expect(t, w, 200, "", strconv.Itoa(9-i))
		if got := w.Header().Get("RateLimit-Policy"); got != `"day";q=10;w=86400` {
			t.Errorf("RateLimit-Policy is %q, want that of the plan in force", got)
		}
	}
	headers = limit.DraftRateLimit
	if h := get(enforce(shadow(http.HandlerFunc(ok)))).Header(); h.Get("RateLimit-Policy") != `"day";q=10;w=86400` || h.Get("X-RateLimit-Limit") != "" {
		t.Errorf("with RateLimit alone the fields are %v, want those of the plan in force", h)
	}
}

// Shadow mode passes on what the engine cannot decide, and neither counts strikes
// nor bans.
func TestShadowIsHarmless(t *testing.T) {
	p := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	caller := ratelimit.Caller{Subject: "a", Plan: ratelimit.MustPlan("p", p, ratelimit.PerMinute(1))}
	l := atNow()
	h := handler(l, caller, limit.Options{
		Shadow: true,
		Observe: func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, _ error) {
			if d.Struck {
				t.Errorf("in shadow mode a request is a strike")
			}
		},
	}, ok)
	for range 20 {
		w := get(h)
		expect(t, w, 200, "", "0")
		if got, there := w.Header()["Retry-After"]; there {
			t.Errorf("a request that was served has Retry-After %q", got)
		}
	}
	if bans, err := l.Bans(t.Context()); err != nil || len(bans) != 0 {
		t.Errorf("shadow mode started the bans %v (%v)", bans, err)
	}
	d, err := l.Peek(t.Context(), caller.Subject, caller.Plan)
	if err != nil || d.StrikesLeft != 1 {
		t.Errorf("after shadow mode %d strikes are left (%v), want all 1", d.StrikesLeft, err)
	}
	if err := l.Ban(t.Context(), caller.Subject, time.Hour, ""); err != nil {
		t.Fatal(err)
	}
	if w := get(h); w.Code != 200 || w.Header()["Retry-After"] != nil || w.Header()["X-Ratelimit-Banned"] != nil {
		t.Errorf("a request of a banned caller gets %d with %v, want 200 without fields of a denial", w.Code, w.Header())
	}
}
