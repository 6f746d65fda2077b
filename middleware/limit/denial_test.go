package limit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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
)

// denied returns the problem details of the first denied request, if each request
// has the cost that is next. The last cost repeats.
func denied(t *testing.T, plan *ratelimit.Plan, costs ...int64) map[string]any {
	t.Helper()
	opts := limit.Options{}
	n := 0
	if len(costs) > 0 {
		opts.Cost = func(*http.Request) int64 { n++; return costs[min(n, len(costs))-1] }
	}
	h := handler(atNow(), ratelimit.Caller{Subject: "a", Plan: plan}, opts, ok)
	for range 1000 {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", "application/problem+json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var body map[string]any
		if w.Code != 200 {
			testcheck.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
			return body
		}
	}
	t.Fatal("no request was denied")
	return nil
}

// What a client reads is part of the interface.
func TestDenialTexts(t *testing.T) {
	quota := func(limit int64, window time.Duration) ratelimit.Quota {
		return ratelimit.Quota{Limit: limit, Window: window}
	}
	const wait = " Wait as long as Retry-After says."
	for _, tt := range []struct {
		scope   string
		strikes int // 0: no penalty
		quota   ratelimit.Quota
		costs   []int64
		want    string
	}{
		{"", 0, ratelimit.PerMinute(60), nil, "You have reached the limit of 60 requests per minute." + wait},
		{"", 0, ratelimit.PerMinute(1), nil, "You have reached the limit of 1 request per minute." + wait},
		{"", 0, quota(900, 15*time.Minute), nil, "You have reached the limit of 900 requests per 15 minutes." + wait},
		{"", 0, quota(2, 90*time.Second), nil, "You have reached the limit of 2 requests per 90 seconds." + wait},
		{"", 0, quota(2, 2*time.Hour), nil, "You have reached the limit of 2 requests per 2 hours." + wait},
		{"", 0, quota(2, 7*24*time.Hour), nil, "You have reached the limit of 2 requests per 7 days." + wait},
		{"", 0, ratelimit.PerMonth(2).From(17), nil, "You have reached the limit of 2 requests per month." + wait},
		{"", 0, ratelimit.PerDay(2).In(time.UTC), nil, "You have reached the limit of 2 requests per day." + wait},
		{"", 0, ratelimit.PerMinute(60).Smooth(10), nil, "You have reached the limit of 60 requests per minute, at most 10 at once." + wait},
		{"", 1, ratelimit.PerDay(2), nil, "You have reached the limit of 2 requests per day." + wait + " Any further request before then may get you banned."},
		{"", 2, ratelimit.PerHour(2), nil, "You have reached the limit of 2 requests per hour." + wait + " More than 1 further request before then may get you banned."},
		{"", 11, ratelimit.PerSecond(2), nil, "You have reached the limit of 2 requests per second." + wait + " More than 10 further requests before then may get you banned."},
		{"", 100, ratelimit.PerDay(2), nil, "You have reached the limit of 2 requests per day." + wait + " More than 99 further requests before then may get you banned."},
		{"", 0, ratelimit.PerMinute(5), []int64{3}, "This request costs 3 units, and 2 of the 5 units per minute are left." + wait},
		{"", 0, ratelimit.PerMinute(5), []int64{4, 5}, "This request costs 5 units, and 1 of the 5 units per minute is left." + wait},
		{"", 0, ratelimit.PerMinute(5), []int64{5, 1}, "This request costs 1 unit, and all 5 units per minute are used up." + wait},
		{"", 0, ratelimit.PerMinute(1), []int64{1}, "This request costs 1 unit, and the 1 unit per minute is used up." + wait},
		{"", 0, ratelimit.PerMinute(60).Smooth(10), []int64{5}, "This request costs 5 units, and 0 are left now of the limit of 60 units per minute, at most 10 at once." + wait},
		{"", 0, ratelimit.PerMinute(60).Smooth(10), []int64{9, 5}, "This request costs 5 units, and 1 is left now of the limit of 60 units per minute, at most 10 at once." + wait},
		{"", 3, ratelimit.PerMinute(5), []int64{3}, "This request costs 3 units, and 2 of the 5 units per minute are left." + wait + " More than 2 further requests before then may get you banned."},
		{"", 0, ratelimit.PerMinute(1), []int64{2}, "This request costs 2 units, but your plan allows at most 1 per minute."},
		{"", 0, ratelimit.PerMinute(60).Smooth(10), []int64{11}, "This request costs 11 units, but your plan allows at most 10 at once."},
		{"organisation", 0, ratelimit.PerMinute(4), nil, "This organisation has reached the limit of 4 requests per minute." + wait},
		{"organisation", 0, ratelimit.PerMinute(60).Smooth(3), nil, "This organisation has reached the limit of 60 requests per minute, at most 3 at once." + wait},
		{"organisation", 1, ratelimit.PerDay(2), nil, "This organisation has reached the limit of 2 requests per day." + wait + " Any further request before then may get this organisation banned."},
		{"organisation", 3, ratelimit.PerDay(2), nil, "This organisation has reached the limit of 2 requests per day." + wait + " More than 2 further requests before then may get this organisation banned."},
		{"organisation", 0, ratelimit.PerMinute(5), []int64{3}, "This request costs 3 units, and 2 of the 5 units per minute of this organisation are left." + wait},
		{"organisation", 0, ratelimit.PerMinute(5), []int64{5, 1}, "This request costs 1 unit, and all 5 units per minute of this organisation are used up." + wait},
		{"organisation", 0, ratelimit.PerMinute(60).Smooth(3), []int64{2}, "This request costs 2 units, and 1 is left now of the limit of 60 units per minute of this organisation, at most 3 at once." + wait},
		{"organisation", 0, ratelimit.PerMinute(1), []int64{2}, "This request costs 2 units, but the plan of this organisation allows at most 1 per minute."},
	} {
		penalty := ratelimit.Penalty{}
		if tt.strikes > 0 {
			penalty = ratelimit.Penalty{Strikes: tt.strikes, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Hour}
		}
		plan := ratelimit.MustPlan("p", penalty, tt.quota).WithScope(tt.scope)
		if got := denied(t, plan, tt.costs...)["detail"]; got != tt.want {
			t.Errorf("%v of %q, costs %v:\n got %s\nwant %s", tt.quota, tt.scope, tt.costs, got, tt.want)
		}
	}
}

// A request may cost more than a soft quota has, but not more than a hard one beside it.
func TestCostOverASoftLimit(t *testing.T) {
	const want = "This request costs 60 units, but your plan allows at most 50 per day."
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(10).Soft(), ratelimit.PerDay(50))
	if got := denied(t, plan, 30, 60)["detail"]; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The error of a ban says why, and speaks of the scope, whatever the kind of the caller. So
// does that of a suspension.
func TestDenialOfScope(t *testing.T) {
	const wait = " Wait as long as Retry-After says."
	for _, tt := range []struct {
		outcome ratelimit.Outcome
		kind    ratelimit.Kind
		scope   string
		reason  string
		want    string
	}{
		{ratelimit.Banned, 0, "", "", "client_banned: You are temporarily banned because you kept sending requests after reaching your limit." + wait},
		{ratelimit.Banned, 77, "", "", "client_banned: You are temporarily banned because you kept sending requests after reaching your limit." + wait},
		{ratelimit.Banned, 0, "", "strikes", "client_banned: You are temporarily banned because you kept sending requests after reaching your limit." + wait},
		{ratelimit.Banned, ratelimit.KindNetwork, "team", "", "client_banned: This team is temporarily banned because it kept sending requests after reaching its limit." + wait},
		{ratelimit.Banned, ratelimit.KindAPIKey, "team", "", "api_key_banned: This team is temporarily banned because it kept sending requests after reaching its limit." + wait},
		{ratelimit.Banned, 0, "", "by hand", "client_banned: You are temporarily banned by the operator of this service." + wait},
		{ratelimit.Banned, 77, "team", "by hand", "client_banned: This team is temporarily banned by the operator of this service." + wait},
		{ratelimit.Banned, ratelimit.KindAPIKey, "", "by hand", "api_key_banned: This API key is temporarily banned by the operator of this service." + wait},
		{ratelimit.Banned, ratelimit.KindNetwork, "", "by hand", "client_banned: Your network is temporarily banned from sending requests without a valid API key by the operator of this service." + wait},
		{ratelimit.Banned, 77, "team", "you sent spam", "client_banned: This team is temporarily banned: you sent spam." + wait},
		{ratelimit.Banned, ratelimit.KindAPIKey, "", "you sent spam", "api_key_banned: This API key is temporarily banned: you sent spam." + wait},
		{ratelimit.Banned, ratelimit.KindNetwork, "", "you sent spam", "client_banned: Your network is temporarily banned from sending requests without a valid API key: you sent spam." + wait},
		{ratelimit.Banned, 0, "", "spam.", "client_banned: You are temporarily banned: spam." + wait},
		{ratelimit.Banned, 0, "", "spam!", "client_banned: You are temporarily banned: spam!" + wait},
		{ratelimit.Banned, 0, "", "spam?", "client_banned: You are temporarily banned: spam?" + wait},
		{ratelimit.Suspended, 0, "team", "", "plan_suspended: The plan of this team is suspended and allows no requests. Contact the operator of this service."},
	} {
		d := ratelimit.Decision{Outcome: tt.outcome, Plan: tokens.WithScope(tt.scope), RetryAfter: 59*time.Second + 1}
		d.Receipt.BanReason = &tt.reason
		e, _ := errors.AsType[*apierror.Error](limit.Denial(ratelimit.Caller{Kind: tt.kind}, &d))
		if e.RetryAfter != time.Minute {
			t.Errorf("%v: RetryAfter is %v, want a minute, as in the header field", tt.outcome, e.RetryAfter)
		}
		args := map[string]any{"scope": tt.scope}
		if tt.outcome == ratelimit.Banned {
			args["reason"] = tt.reason
			if tt.reason == "" {
				args["reason"] = "strikes"
			}
		}
		if got := fmt.Sprintf("%s: %s", e.Code, e.Message); got != tt.want || !maps.Equal(e.Args, args) {
			t.Errorf("%v %d %q %q:\n got %s %v\nwant %s %v", tt.outcome, tt.kind, tt.scope, tt.reason, got, e.Args, tt.want, args)
		}
	}
	d := ratelimit.Decision{Outcome: ratelimit.Suspended} // of an engine that leaves the plan out
	if e, _ := errors.AsType[*apierror.Error](limit.Denial(ratelimit.Caller{}, &d)); e == nil || e.Code != "plan_suspended" {
		t.Errorf("suspended without a plan: %v", e)
	}
}

// A plan keeps its texts: another set of refusing quotas must not show in them.
func TestDenialNamesTheQuotasThatRefuse(t *testing.T) {
	minute, hour := ratelimit.PerMinute(2), ratelimit.PerHour(4)
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, minute, hour)
	at := time.Unix(now, 0)
	h := handler(newEngine(&at), ratelimit.Caller{Subject: "a", Plan: plan}, limit.Options{}, ok)
	for i, step := range []struct {
		after  time.Duration
		detail string
		names  []any
	}{
		{0, "2 requests per minute", []any{"minute"}},
		{time.Minute, "4 requests per hour", []any{"minute", "hour"}},
		{time.Minute, "4 requests per hour", []any{"hour"}},
	} {
		at = at.Add(step.after)
		var body map[string]any
		for range 3 {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Accept", "application/problem+json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			_ = json.Unmarshal(w.Body.Bytes(), &body)
		}
		if diff := cmp.Diff(step.names, body["violated-policies"]); diff != "" || !strings.Contains(body["detail"].(string), step.detail) {
			t.Errorf("step %d: %q, violated-policies (-want +got):\n%s", i, body["detail"], diff)
		}
	}
}

// Errors writes what the middleware refuses, and what identify returns: its Retry-After too. In
// the latter case nothing is counted, also if there is a caller beside the error. An identify
// function that could not ask its store is an engine that could not decide.
func TestErrors(t *testing.T) {
	at := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	p := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	limited := ratelimit.Caller{Subject: "a", Plan: ratelimit.MustPlan("p", p, ratelimit.PerMinute(1)), Kind: ratelimit.KindAPIKey}
	suspended := ratelimit.Caller{Subject: "a", Plan: ratelimit.SuspendedPlan("s")}
	unlimited := ratelimit.Caller{Subject: "a", Plan: ratelimit.UnlimitedPlan("u")}
	cost, observed := int64(1), 0
	var log bytes.Buffer
	opts := limit.Options{
		Name:    "one", // of all handlers below, which share the engine
		Cost:    func(*http.Request) int64 { return cost },
		Observe: func(*http.Request, ratelimit.Caller, ratelimit.Decision, error) { observed++ },
		Errors: &apierror.Responder{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Write: func(w http.ResponseWriter, r *http.Request, e *apierror.Error) {
				w.WriteHeader(http.StatusTeapot)
				fmt.Fprint(w, e.Message, " ", e.Code, " ", e.RetryAfter, " ", e.Args)
			},
			Translate: func(_ *http.Request, e *apierror.Error) string { return fmt.Sprint("wait ", e.RetryAfter, ":") },
		},
	}
	shadow, open := opts, opts
	shadow.Shadow, open.FailOpen = true, true
	l := newEngine(&at)
	down := broken{ratelimit.ErrUnavailable}
	away := fmt.Errorf("%w: the database does not answer", ratelimit.ErrUnavailable)
	secret, tenant := errors.New("secret"), apierror.New(http.StatusForbidden, "no_such_tenant", "There is no such tenant.")
	busy := &apierror.Error{Status: 503, Code: "busy", RetryAfter: 1500 * time.Millisecond}
	for _, step := range []struct {
		name       string
		limiter    ratelimit.Limiter
		caller     ratelimit.Caller
		err        error // of identify
		opts       limit.Options
		cost       int64
		want       string
		retryAfter string
		observed   int
	}{
		{"admitted", l, limited, nil, opts, 1, "200 ok", "", 1},
		{"limited", l, limited, nil, opts, 1, "418 wait 30s: rate_limit_exceeded 30s map[cost:1 limit:1 quota:1/minute remaining:0 scope: strikes:0]", "30", 1},
		{"limited in shadow mode", l, limited, nil, shadow, 1, "200 ok", "", 1},
		{"banned", l, limited, nil, opts, 1, "418 wait 1h0m0s: api_key_banned 1h0m0s map[reason:strikes scope:]", "3600", 1},
		{"suspended", l, suspended, nil, opts, 1, "418 wait 0s: plan_suspended 0s map[scope:]", "", 1},
		{"over the limit", l, limited, nil, opts, 2, "418 wait 0s: cost_exceeds_limit 0s map[cost:2 limit:1 quota:1/minute scope:]", "", 1},
		{"undecided", down, limited, nil, opts, 1, "418 wait 1s: unavailable 1s map[]", "1", 1},
		{"identify fails", l, limited, secret, opts, 1, "418 wait 0s: internal 0s map[]", "", 0},
		{"identify fails, open", l, limited, secret, open, 1, "418 wait 0s: internal 0s map[]", "", 0},
		{"identify fails, shadow", l, limited, secret, shadow, 1, "200 ok", "", 0},
		{"identify fails, unlimited", l, unlimited, secret, opts, 1, "418 wait 0s: internal 0s map[]", "", 0},
		{"a public error of identify", l, limited, tenant, opts, 1, "418 wait 0s: no_such_tenant 0s map[]", "", 0},
		{"a public error of identify, shadow", l, limited, tenant, shadow, 1, "200 ok", "", 0},
		{"a public error with a cause", l, limited, tenant.Wrap(secret), opts, 1, "418 wait 0s: no_such_tenant 0s map[]", "", 0},
		{"no answer for identify", l, limited, away, opts, 1, "418 wait 1s: unavailable 1s map[]", "1", 1},
		{"no answer for identify, open", l, limited, away, open, 1, "200 ok", "", 1},
		{"invalid too, open", l, limited, fmt.Errorf("%w: %w", ratelimit.ErrInvalid, away), open, 1, "418 wait 0s: internal 0s map[]", "", 0},
		{"an answer of identify", l, limited, fmt.Errorf("%w: %w", away, busy), opts, 1, "418 wait 1.5s: busy 1.5s map[]", "2", 1},
	} {
		cost, observed = step.cost, 0
		log.Reset()
		identify := func(*http.Request) (ratelimit.Caller, error) { return step.caller, step.err }
		w := get(must(limit.New(step.limiter, identify, step.opts))(http.HandlerFunc(ok)))
		if diff := cmp.Diff(step.want, fmt.Sprint(w.Code, " ", w.Body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if got := w.Header().Get("Retry-After"); got != step.retryAfter || observed != step.observed {
			t.Errorf("%s: Retry-After is %q, want %q; observed %d times, want %d", step.name, got, step.retryAfter, observed, step.observed)
		}
		if got := w.Header().Get("X-RateLimit-Limit"); step.err != nil && got != "" {
			t.Errorf("%s: X-RateLimit-Limit is %q, though nothing was decided", step.name, got)
		}
		switch answered := !step.opts.Shadow && step.observed == 0; {
		case answered && errors.Is(step.err, secret) && !strings.Contains(log.String(), "secret"):
			t.Errorf("%s: the log is %q, want the cause of the error of identify", step.name, &log)
		case step.err == error(tenant) && log.Len() > 0:
			t.Errorf("%s: the log is %q, want nothing of an error without a cause", step.name, &log)
		}
	}
}
