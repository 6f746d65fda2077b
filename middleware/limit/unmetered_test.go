package limit_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

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
			h := handler(t, down, caller, limit.Options{Headers: set, FailOpen: open, Observe: observe}, ok)
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
	h := handler(t, down, caller, limit.Options{Shadow: true, Observe: observe}, ok)
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
	h := handler(t, l, caller, opts, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
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

// Inside another limit, the fields of a suspended plan replace those of the other one as
// a whole, and an unlimited plan leaves them.
func TestHeadersOfPlansWithoutQuotasInsideAnotherLimit(t *testing.T) {
	at := time.Unix(now, 0)
	outer := ratelimit.Caller{Subject: "network:192.0.2.1/32", Plan: ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(10))}
	for _, tt := range []struct {
		inner *ratelimit.Plan
		want  []string
	}{
		{ratelimit.SuspendedPlan("debtor"), []string{"X-Ratelimit-Limit: 0", "X-Ratelimit-Remaining: 0"}},
		{ratelimit.UnlimitedPlan("tester"), []string{"X-Ratelimit-Limit: 10", "X-Ratelimit-Remaining: 9", "X-Ratelimit-Reset: 1800057600"}},
	} {
		l := newEngine(t, &at)
		inner := handler(t, l, ratelimit.Caller{Subject: "a", Plan: tt.inner}, limit.Options{}, ok)
		w := get(handler(t, l, outer, limit.Options{}, inner.ServeHTTP))
		if diff := cmp.Diff(tt.want, rateFields(w.Header())); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.inner, diff)
		}
	}
}

func TestPlansWithoutQuotas(t *testing.T) {
	for _, c := range []struct {
		plan    *ratelimit.Plan
		outcome ratelimit.Outcome
		text    string
	}{
		{ratelimit.UnlimitedPlan("tester"), ratelimit.Allowed, "tester unlimited"},
		{ratelimit.SuspendedPlan("debtor"), ratelimit.Suspended, "debtor suspended"},
	} {
		d := engine.Uncounted(c.plan, 3, time.Unix(now, 0))
		if d.Outcome != c.outcome || d.Cost != 3 || d.Limit() != 0 || d.Remaining() != 0 || d.Reset() != 0 || d.RetryAfter != 0 {
			t.Errorf("%v: Uncounted returned %+v, want %v and no numbers", c.plan, d, c.outcome)
		}
		if c.plan.String() != c.text || engine.Of(c.plan).Len() != 0 || len(c.plan.Quotas()) != 0 || c.plan.WithoutPenalty() != c.plan {
			t.Errorf("%v is not a plan %q without quotas and penalty", c.plan, c.text)
		}
	}
	d, err := engine.Decide("a", ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(1)), 1)
	if d != (ratelimit.Decision{}) || err != nil {
		t.Errorf("a plan with quotas decided %+v (%v), want that it leaves this to the engine", d, err)
	}
	if _, err := engine.Decide("a", new(ratelimit.Plan), 1); !errors.Is(err, ratelimit.ErrInvalid) {
		t.Errorf("the zero Plan: got error %v, want one that wraps ErrInvalid", err)
	}
	if _, err := engine.Decide("a", (*ratelimit.Plan)(nil), 1); !errors.Is(err, ratelimit.ErrInvalid) {
		t.Errorf("a nil Plan: got error %v, want one that wraps ErrInvalid", err)
	}
}
