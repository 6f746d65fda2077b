package limit_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// denied returns the problem details of the first denied request, if each request
// has the cost that is next. The last cost repeats.
func denied(t *testing.T, plan *ratelimit.Plan, costs ...int64) map[string]any {
	t.Helper()
	at := time.Unix(now, 0)
	opts := limit.Options{}
	n := 0
	if len(costs) > 0 {
		opts.Cost = func(*http.Request) int64 { n++; return costs[min(n, len(costs))-1] }
	}
	h := handler(t, newEngine(t, &at), ratelimit.Caller{Subject: "a", Plan: plan}, opts, ok)
	for range 1000 {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", "application/problem+json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var body map[string]any
		if w.Code != 200 {
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			return body
		}
	}
	t.Fatal("no request was denied")
	return nil
}

// What a client reads is part of the interface.
func TestDenialTexts(t *testing.T) {
	strikes := func(n int) ratelimit.Penalty {
		return ratelimit.Penalty{Strikes: n, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Hour}
	}
	quota := func(limit int64, window time.Duration) ratelimit.Quota {
		return ratelimit.Quota{Limit: limit, Window: window}
	}
	const wait = " Wait as long as Retry-After says."
	for _, tt := range []struct {
		penalty ratelimit.Penalty
		quota   ratelimit.Quota
		costs   []int64
		want    string
	}{
		{ratelimit.Penalty{}, ratelimit.PerMinute(60), nil, "You have reached the limit of 60 requests per minute." + wait},
		{ratelimit.Penalty{}, ratelimit.PerMinute(1), nil, "You have reached the limit of 1 request per minute." + wait},
		{ratelimit.Penalty{}, quota(900, 15*time.Minute), nil, "You have reached the limit of 900 requests per 15 minutes." + wait},
		{ratelimit.Penalty{}, quota(2, 90*time.Second), nil, "You have reached the limit of 2 requests per 90 seconds." + wait},
		{ratelimit.Penalty{}, quota(2, 2*time.Hour), nil, "You have reached the limit of 2 requests per 2 hours." + wait},
		{ratelimit.Penalty{}, quota(2, 7*24*time.Hour), nil, "You have reached the limit of 2 requests per 7 days." + wait},
		{ratelimit.Penalty{}, ratelimit.PerMonth(2).From(17), nil, "You have reached the limit of 2 requests per month." + wait},
		{ratelimit.Penalty{}, ratelimit.PerDay(2).In(time.UTC), nil, "You have reached the limit of 2 requests per day." + wait},
		{strikes(1), ratelimit.PerDay(2), nil, "You have reached the limit of 2 requests per day." + wait +
			" Any further request before then may get you banned."},
		{strikes(2), ratelimit.PerHour(2), nil, "You have reached the limit of 2 requests per hour." + wait +
			" More than 1 further request before then may get you banned."},
		{strikes(11), ratelimit.PerSecond(2), nil, "You have reached the limit of 2 requests per second." + wait +
			" More than 10 further requests before then may get you banned."},
		{strikes(100), ratelimit.PerDay(2), nil, "You have reached the limit of 2 requests per day." + wait +
			" More than 99 further requests before then may get you banned."},
		{ratelimit.Penalty{}, ratelimit.PerMinute(5), []int64{3}, "This request costs 3 units, and 2 of the 5 units per minute are left." + wait},
		{ratelimit.Penalty{}, ratelimit.PerMinute(5), []int64{4, 5}, "This request costs 5 units, and 1 of the 5 units per minute is left." + wait},
		{ratelimit.Penalty{}, ratelimit.PerMinute(5), []int64{5, 1}, "This request costs 1 unit, and all 5 units per minute are used up." + wait},
		{ratelimit.Penalty{}, ratelimit.PerMinute(1), []int64{1}, "This request costs 1 unit, and the 1 unit per minute is used up." + wait},
		{strikes(3), ratelimit.PerMinute(5), []int64{3}, "This request costs 3 units, and 2 of the 5 units per minute are left." + wait +
			" More than 2 further requests before then may get you banned."},
		{ratelimit.Penalty{}, ratelimit.PerMinute(1), []int64{2}, "This request costs 2 units, but your plan allows at most 1 per minute."},
	} {
		plan := ratelimit.MustPlan("p", tt.penalty, tt.quota)
		if got := denied(t, plan, tt.costs...)["detail"]; got != tt.want {
			t.Errorf("%v, costs %v:\n got %s\nwant %s", tt.quota, tt.costs, got, tt.want)
		}
	}
}

// A plan keeps its texts: another set of refusing quotas must not show in them.
func TestDenialNamesTheQuotasThatRefuse(t *testing.T) {
	minute, hour := ratelimit.PerMinute(2), ratelimit.PerHour(4)
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, minute, hour)
	at := time.Unix(now, 0)
	h := handler(t, newEngine(t, &at), ratelimit.Caller{Subject: "a", Plan: plan}, limit.Options{}, ok)
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

func TestProblemTypes(t *testing.T) {
	p := ratelimit.Penalty{Strikes: 1, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Hour}
	for _, tt := range []struct {
		name string
		kind ratelimit.Kind
		want map[string]any
	}{
		{"client", 0, map[string]any{
			"type": "https://iana.org/assignments/http-problem-types#abnormal-usage-detected", "title": "Abnormal Usage Detected",
			"status": 429.0, "code": "client_banned",
			"detail": "You are temporarily banned because you kept sending requests after reaching your limit. Wait as long as Retry-After says.",
		}},
		{"key", ratelimit.KindAPIKey, map[string]any{
			"type": "https://iana.org/assignments/http-problem-types#abnormal-usage-detected", "title": "Abnormal Usage Detected",
			"status": 429.0, "code": "api_key_banned",
			"detail": "This API key is temporarily banned because it kept sending requests after reaching its limit. Wait as long as Retry-After says.",
		}},
		{"network", ratelimit.KindNetwork, map[string]any{
			"type": "https://iana.org/assignments/http-problem-types#abnormal-usage-detected", "title": "Abnormal Usage Detected",
			"status": 429.0, "code": "client_banned",
			"detail": "Your network is temporarily banned from sending requests without a valid API key because it kept sending them after reaching its limit. Wait as long as Retry-After says.",
		}},
	} {
		plan := ratelimit.MustPlan("p", p, ratelimit.PerMinute(1))
		at := time.Unix(now, 0)
		h := handler(t, newEngine(t, &at), ratelimit.Caller{Subject: "a", Plan: plan, Kind: tt.kind}, limit.Options{}, ok)
		var body map[string]any
		for range 3 {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Accept", "application/problem+json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			body = nil
			_ = json.Unmarshal(w.Body.Bytes(), &body)
		}
		if diff := cmp.Diff(tt.want, body); diff != "" {
			t.Errorf("ban of a %s (-want +got):\n%s", tt.name, diff)
		}
	}
	want := map[string]any{
		"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Quota Exceeded", "status": 429.0,
		"code": "rate_limit_exceeded", "violated-policies": []any{"minute"},
		"detail": "You have reached the limit of 1 request per minute. Wait as long as Retry-After says.",
	}
	got := denied(t, ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(1)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("limited (-want +got):\n%s", diff)
	}
}
