package limit_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
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
		{second(limit.New(holding{downFor: downFor{Limiter: atNow()}}, identify, limit.Options{Settle: true, Hold: time.Second - 1})), "Options.Hold must be 0, or from 1s to 1h, got 999.999999ms"},
		{second(limit.New(holding{downFor: downFor{Limiter: atNow()}}, identify, limit.Options{Settle: true, Hold: time.Hour + 1})), "Options.Hold must be 0, or from 1s to 1h, got 1h0m0.000000001s"},
		{second(limit.New(holding{downFor: downFor{Limiter: atNow()}}, identify, limit.Options{Hold: time.Second})), "Options.Hold needs Options.Settle"},
		{second(limit.New(broken{}, identify, limit.Options{Settle: true, Hold: time.Second})), "a limiter that is a Holder"},
		{second(limit.New(broken{}, identify, limit.Options{Hold: time.Second})), "a limiter that is a Holder"},
		{second(limit.New(broken{}, identify, limit.Options{ChargeIf: limit.NotServerError})), "Options.ChargeIf needs a limiter that is an Adjuster"},
		{second(limit.New(broken{}, identify, limit.Options{Headers: limit.NoHeaders | limit.XRateLimit})), "Options.Headers must be"},
		{second(limit.New(broken{}, identify, limit.Options{Headers: limit.NoHeaders << 1})), "Options.Headers must be"},
		{second(limit.New(broken{}, identify, limit.Options{Name: "a/b"})), "Options.Name must have no slash"},
		{second(limit.New(broken{}, identify, limit.Options{Name: "user:"})), "Options.Name must have no slash and no colon"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.says) {
			t.Errorf("got error %v, want one that says %q", test.err, test.says)
		}
	}
}

func second[T any](_ T, err error) error { return err }

const everyHeader = limit.XRateLimit | limit.DraftRateLimit

// A suspended caller gets 403, is not told to retry, and is never struck or banned. The plan
// alone decides: an engine that is down makes no difference.
func TestSuspendedPlan(t *testing.T) {
	caller := ratelimit.Caller{Subject: "owner:17", Plan: ratelimit.SuspendedPlan("debtor")}
	none := []string{"X-Ratelimit-Limit: 0", "X-Ratelimit-Remaining: 0"}
	for _, c := range []struct {
		opts   limit.Options
		status int
		fields []string
	}{
		{limit.Options{}, 403, none},
		{limit.Options{Headers: everyHeader, FailOpen: true}, 403, none},
		{limit.Options{Headers: limit.NoHeaders}, 403, nil},
		{limit.Options{Shadow: true}, 200, none},
	} {
		observed := 0
		c.opts.Observe = func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, err error) {
			if observed++; err != nil || d.Outcome != ratelimit.Suspended || d.Struck || d.Allowed() {
				t.Errorf("%+v: observed %+v and error %v, want suspended and no strike", c.opts, d, err)
			}
		}
		w := get(handler(broken{errors.New("asked")}, caller, c.opts, ok))
		if diff := cmp.Diff(c.fields, rateFields(w.Header())); diff != "" || w.Code != c.status || observed != 1 {
			t.Errorf("%+v: got %d, observed %d times, fields (-want +got):\n%s", c.opts, w.Code, observed, diff)
		}
	}
}

// A plan that is tried beside the one in force must not speak for it, on
// whichever side of it the shadow stands.
func TestShadowLeavesTheFieldsOfTheLimitInForce(t *testing.T) {
	inForce := ratelimit.Caller{Subject: "a", Plan: ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(10))}
	trial := ratelimit.Caller{Subject: "a", Plan: ratelimit.MustPlan("q", ratelimit.Penalty{}, ratelimit.PerHour(3))}
	for _, headers := range []limit.HeaderSet{everyHeader, limit.DraftRateLimit, limit.XRateLimit} {
		enforce := func(next http.Handler) http.Handler {
			return handler(atNow(), inForce, limit.Options{Headers: headers}, next.ServeHTTP)
		}
		shadow := func(next http.Handler) http.Handler {
			return handler(atNow(), trial, limit.Options{Headers: headers, Shadow: true}, next.ServeHTTP)
		}
		want := rateFields(get(enforce(http.HandlerFunc(ok))).Header())
		for _, h := range []http.Handler{enforce(shadow(http.HandlerFunc(ok))), shadow(enforce(http.HandlerFunc(ok)))} {
			if diff := cmp.Diff(want, rateFields(get(h).Header())); diff != "" {
				t.Errorf("headers %d (-want +got):\n%s", headers, diff)
			}
		}
	}
}

// Shadow mode counts no strike and starts no ban, whichever charge is limited.
func TestShadowIsHarmless(t *testing.T) {
	p := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	plan := ratelimit.MustPlan("p", p, ratelimit.PerMinute(1))
	for _, caller := range []ratelimit.Caller{
		{Subject: "a", Plan: plan}, {Subject: "b", Plan: tokens, Also: []ratelimit.Charge{{Subject: "a", Plan: plan}}},
	} {
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
		d, err := l.Peek(t.Context(), "a", plan)
		if err != nil || d.Outcome == ratelimit.Banned || d.StrikesLeft != 1 {
			t.Errorf("after shadow mode the subject is %v with %d strikes left (%v), want all 1", d.Outcome, d.StrikesLeft, err)
		}
		testcheck.NoError(t, l.Ban(t.Context(), "a", time.Hour, ""))
		if w := get(h); w.Code != 200 || w.Header()["Retry-After"] != nil || w.Header()["X-Ratelimit-Banned"] != nil {
			t.Errorf("a request of a banned caller gets %d with %v, want 200 without fields of a denial", w.Code, w.Header())
		}
	}
}
