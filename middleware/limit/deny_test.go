package limit_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Options.Deny gets each denial, after the header fields are set, and writes all of
// the response. Everything else is answered as without it.
func TestDeny(t *testing.T) {
	at := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	p := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	limited := ratelimit.Caller{Subject: "a", Plan: ratelimit.MustPlan("p", p, ratelimit.PerMinute(1)), Kind: ratelimit.KindAPIKey}
	suspended := ratelimit.Caller{Subject: "a", Plan: ratelimit.SuspendedPlan("s")}
	var cost int64
	opts := limit.Options{
		Cost: func(*http.Request) int64 { return cost },
		Deny: func(w http.ResponseWriter, r *http.Request, c ratelimit.Caller, d ratelimit.Decision) {
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, "%s %s %s %v %s", r.URL.Path, c.Subject, d.Outcome, d.RetryAfter, limit.Denial(c, &d).Code)
		},
	}
	shadow := opts
	shadow.Shadow = true
	l := newEngine(t, &at)
	down := broken{ratelimit.ErrUnavailable}
	for _, step := range []struct {
		name       string
		limiter    ratelimit.Limiter
		caller     ratelimit.Caller
		opts       limit.Options
		cost       int64
		want       string
		retryAfter string
	}{
		{"admitted", l, limited, opts, 1, "200 ok", ""},
		{"limited", l, limited, opts, 1, "418 / a limited 30s rate_limit_exceeded", "30"},
		{"limited in shadow mode", l, limited, shadow, 1, "200 ok", ""},
		{"banned", l, limited, opts, 1, "418 / a banned 1h0m0s api_key_banned", "3600"},
		{"suspended", l, suspended, opts, 1, "418 / a suspended 0s plan_suspended", ""},
		{"over the limit", l, limited, opts, 2, `400 {"code":"cost_exceeds_limit","message":"This request costs 2 units, but your plan allows at most 1 per minute.","status":400}` + "\n", ""},
		{"undecided", down, limited, opts, 1, `503 {"code":"unavailable","message":"The service cannot check your rate limit at the moment. Wait as long as Retry-After says.","status":503}` + "\n", "1"},
	} {
		cost = step.cost
		w := get(handler(t, step.limiter, step.caller, step.opts, ok))
		if diff := cmp.Diff(step.want, fmt.Sprint(w.Code, " ", w.Body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if got := w.Header().Get("Retry-After"); got != step.retryAfter {
			t.Errorf("%s: Retry-After is %q, want %q", step.name, got, step.retryAfter)
		}
	}
}

// Error is what the middleware writes, and nothing for requests that it admits.
func TestDecisionError(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(5))
	for _, tt := range []struct {
		d    ratelimit.Decision
		want string
	}{
		{ratelimit.Decision{}, "none"},
		{ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: plan, Cost: 1}, "none"},
		{ratelimit.Decision{Outcome: ratelimit.Spared, Plan: plan, Cost: 1}, "none"},
		{ratelimit.Decision{Outcome: ratelimit.Limited, Plan: plan, Cost: 1, StrikesLeft: -1},
			"429 rate_limit_exceeded: You have reached the limit of 5 requests per minute. Wait as long as Retry-After says."},
		{ratelimit.Decision{Outcome: ratelimit.Limited, Plan: plan, Cost: 3, StrikesLeft: -1},
			"429 rate_limit_exceeded: This request costs 3 units, and all 5 units per minute are used up. Wait as long as Retry-After says."},
		{ratelimit.Decision{Outcome: ratelimit.Banned, Plan: plan, Cost: 1},
			"429 client_banned: You are temporarily banned because you kept sending requests after reaching your limit. Wait as long as Retry-After says."},
		{ratelimit.Decision{Outcome: ratelimit.Suspended, Plan: plan, Cost: 1},
			"403 plan_suspended: Your plan is suspended and allows no requests. Contact the operator of this service."},
	} {
		got := "none"
		if e := limit.Denial(ratelimit.Caller{}, &tt.d); e != nil {
			got = e.Error()
		}
		if got != tt.want {
			t.Errorf("%v with cost %d:\n got %s\nwant %s", tt.d.Outcome, tt.d.Cost, got, tt.want)
		}
	}
}
