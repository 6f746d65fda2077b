package limit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// The plans of a caller that is counted for three subjects.
var (
	annsPlan  = ratelimit.MustPlan("ann's", ratelimit.Penalty{Strikes: 1, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Hour}, ratelimit.PerMinute(3))
	teamPlan  = ratelimit.MustPlan("team's", ratelimit.Penalty{}, ratelimit.PerHour(10))
	worldPlan = ratelimit.MustPlan("world's", ratelimit.Penalty{}, ratelimit.PerDay(20))
)

func ann() ratelimit.Caller {
	return ratelimit.Caller{Subject: "user:ann", Plan: annsPlan, Kind: ratelimit.KindAPIKey, Also: []ratelimit.Charge{
		{Subject: "team:7", Plan: teamPlan}, {Subject: "world", Plan: worldPlan, Cost: 2},
	}}
}

// wantLeft fails unless the three subjects have so many units left.
func wantLeft(t *testing.T, l *memory.Limiter, step string, want ...int64) {
	t.Helper()
	var got []int64
	for _, c := range append([]ratelimit.Charge{{Subject: "user:ann", Plan: annsPlan}}, ann().Also...) {
		d := must(l.Peek(t.Context(), c.Subject, c.Plan))
		got = append(got, d.States[0].Remaining)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: units left of ann, the team and the world (-want +got):\n%s", step, diff)
	}
}

// use uses units of one subject.
func use(t *testing.T, l ratelimit.Limiter, c ratelimit.Charge) {
	t.Helper()
	if d, err := l.Take(t.Context(), c.Subject, c.Plan, c.Cost); err != nil || !d.Allowed() {
		t.Fatal(d.Outcome, err)
	}
}

// One request is charged to all subjects or to none, and answered once, with the fields
// of the one that matters most.
func TestAlso(t *testing.T) {
	at := time.Unix(now, 0)
	l := newEngine(&at)
	var observed []string
	h := handler(l, ann(), limit.Options{Observe: func(_ *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
		if err != nil || c.Subject != "user:ann" || c.Plan != annsPlan || c.Kind != ratelimit.KindAPIKey || len(c.Also) != 2 {
			t.Errorf("observed the caller %+v, with error %v, want the one of identify", c, err)
		}
		observed = append(observed, d.Plan.Name()+" "+d.Outcome.String())
	}}, ok)
	expect(t, get(h), 200, "", "2")
	wantLeft(t, l, "one request", 2, 9, 18)
	use(t, l, ratelimit.Charge{Subject: "team:7", Plan: teamPlan, Cost: 8})
	w := get(h)
	expect(t, w, 200, "", "0")
	if limit := w.Header().Get("X-RateLimit-Limit"); limit != "10" {
		t.Errorf("X-RateLimit-Limit is %s, want the team's 10, of which least is left", limit)
	}
	w = get(h)
	expect(t, w, 429, "rate_limit_exceeded", "0")
	if fields := w.Header().Values("Retry-After"); len(fields) != 1 || fields[0] == "0" {
		t.Errorf("Retry-After is %v, want the seconds until the team's hour ends", fields)
	}
	wantLeft(t, l, "the team is limited", 1, 0, 16)
	at = at.Add(time.Hour)
	for _, left := range []string{"2", "1", "0"} {
		expect(t, get(h), 200, "", left)
	}
	expect(t, get(h), 429, "rate_limit_exceeded", "0")
	expect(t, get(h), 429, "api_key_banned", "0")
	wantLeft(t, l, "ann is banned", 0, 7, 10)
	testcheck.NoError(t, l.Ban(t.Context(), "team:7", time.Hour, ""))
	expect(t, get(h), 429, "client_banned", "0") // the team, for longer: it has no key
	want := []string{
		"ann's allowed", "team's allowed", "team's limited",
		"ann's allowed", "ann's allowed", "ann's allowed", "ann's limited", "ann's banned", "team's banned",
	}
	if diff := cmp.Diff(want, observed); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}

// The draft's fields show the limits of all charges.
func TestDraftFieldsOfSeveralCharges(t *testing.T) {
	daily := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerDay(1000)).WithScope("tokens")
	caller := ratelimit.Caller{Subject: "user:ann", Plan: teamPlan, Also: []ratelimit.Charge{{Subject: "tokens:ann", Plan: daily, Cost: 40}}}
	fields := rateFields(get(handler(atNow(), caller, limit.Options{Headers: limit.DraftRateLimit}, ok)).Header())
	want := []string{
		`Ratelimit-Policy: "hour";q=10;w=3600, "tokens-day";q=1000;w=86400`,
		`Ratelimit: "hour";r=9;t=3600, "tokens-day";r=960;t=57600`,
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// An engine may have lower limits than the plan. The error is about a charge that it counts.
func TestAlsoAboveALimitOfTheEngine(t *testing.T) {
	caller := ratelimit.Caller{Subject: "user:ann", Plan: ratelimit.UnlimitedPlan(""), Also: []ratelimit.Charge{{Subject: "team", Plan: teamPlan}}}
	expect(t, get(handler(brokenAll{broken{ratelimit.ErrCostExceedsLimit}}, caller, limit.Options{}, ok)), 400, "cost_exceeds_limit", "0")
}

// What is wrong with one charge is wrong with the request.
func TestAlsoWithErrors(t *testing.T) {
	suspended := ratelimit.SuspendedPlan("suspended")
	for name, c := range map[string]struct {
		also   ratelimit.Charge
		cost   int64
		status int
		code   string
		left   string // X-RateLimit-Remaining
	}{
		"no plan":             {ratelimit.Charge{Subject: "b"}, 1, 500, "internal", "0"},
		"no subject":          {ratelimit.Charge{Plan: teamPlan}, 1, 500, "internal", "0"},
		"the same subject":    {ratelimit.Charge{Subject: "user:ann", Plan: teamPlan}, 1, 500, "internal", "0"},
		"a cost of its own":   {ratelimit.Charge{Subject: "b", Plan: teamPlan, Cost: 11}, 1, 400, "cost_exceeds_limit", "10"},
		"the request's cost":  {ratelimit.Charge{Subject: "b", Plan: ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerDay(1))}, 2, 400, "cost_exceeds_limit", "1"},
		"a suspended subject": {ratelimit.Charge{Subject: "b", Plan: suspended}, 1, 403, "plan_suspended", "0"},
		"an unlimited one":    {ratelimit.Charge{Subject: "b", Plan: ratelimit.UnlimitedPlan("")}, 1, 200, "", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			l := atNow()
			caller := ratelimit.Caller{Subject: "user:ann", Plan: annsPlan, Also: []ratelimit.Charge{c.also}}
			h := handler(l, caller, limit.Options{Cost: func(*http.Request) int64 { return c.cost }}, ok)
			expect(t, get(h), c.status, c.code, c.left)
			if c.status != 200 {
				wantLeft(t, l, "refused", 3, 10, 20)
			}
		})
	}
}
