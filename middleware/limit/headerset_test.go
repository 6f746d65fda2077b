package limit_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// rateFields returns the header fields of h that a limit can set, sorted.
func rateFields(h http.Header) (fields []string) {
	for name, values := range h {
		if strings.Contains(strings.ToLower(name), "ratelimit") || name == "Retry-After" {
			fields = append(fields, name+": "+strings.Join(values, " | "))
		}
	}
	slices.Sort(fields)
	return fields
}

// Each set has its fields on every response, and Retry-After is on each denial.
func TestHeaderSets(t *testing.T) {
	at := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	p := ratelimit.Penalty{Strikes: 1, Ban: 2 * time.Minute, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	plan := ratelimit.MustPlan("p", p, ratelimit.PerMinute(2))
	x := func(remaining, reset string) []string {
		return []string{"X-Ratelimit-Limit: 2", "X-Ratelimit-Remaining: " + remaining, "X-Ratelimit-Reset: " + reset}
	}
	draft := func(state string) []string {
		return []string{`Ratelimit-Policy: "minute";q=2;w=60`, `Ratelimit: "minute";` + state}
	}
	wait := func(seconds string) []string { return []string{"Retry-After: " + seconds} }
	const minute, ban = "1772366460", "1772366550"
	for name, c := range map[string]struct {
		set                            limit.HeaderSet
		first, second, limited, banned []string
	}{
		"the zero set": {0, x("1", minute), x("0", minute), slices.Concat(wait("30"), x("0", minute)), slices.Concat(wait("120"), x("0", ban))},
		"XRateLimit":   {limit.XRateLimit, x("1", minute), x("0", minute), slices.Concat(wait("30"), x("0", minute)), slices.Concat(wait("120"), x("0", ban))},
		"DraftRateLimit": {limit.DraftRateLimit, draft("r=1;t=30"), draft("r=0;t=30"),
			slices.Concat(draft("r=0;t=30"), wait("30")), slices.Concat(draft("r=0;t=120"), wait("120"))},
		"XRateLimit and DraftRateLimit": {limit.XRateLimit | limit.DraftRateLimit,
			slices.Concat(draft("r=1;t=30"), x("1", minute)), slices.Concat(draft("r=0;t=30"), x("0", minute)),
			slices.Concat(draft("r=0;t=30"), wait("30"), x("0", minute)), slices.Concat(draft("r=0;t=120"), wait("120"), x("0", ban))},
		"NoHeaders": {limit.NoHeaders, nil, nil, wait("30"), wait("120")},
	} {
		h := handler(t, newEngine(t, &at), ratelimit.Caller{Subject: "a", Plan: plan}, limit.Options{Headers: c.set}, ok)
		for i, want := range [][]string{c.first, c.second, c.limited, c.banned} {
			if diff := cmp.Diff(want, rateFields(get(h).Header())); diff != "" {
				t.Errorf("%s, response %d (-want +got):\n%s", name, i+1, diff)
			}
		}
	}
}

// Of two middlewares the inner one's quota is shown, whole: nothing of another quota is
// left in its set. The fields of other sets stay.
func TestHeaderSetsOfTwoMiddlewares(t *testing.T) {
	at := time.Unix(now, 0)
	outer := ratelimit.MustPlan("outer", ratelimit.Penalty{}, ratelimit.PerMinute(60))
	for name, c := range map[string]struct {
		inner *ratelimit.Plan
		set   limit.HeaderSet
		want  []string
	}{
		"another window": {ratelimit.MustPlan("inner", ratelimit.Penalty{}, ratelimit.PerHour(7)), 0,
			[]string{"X-Ratelimit-Limit: 7", "X-Ratelimit-Remaining: 6", "X-Ratelimit-Reset: 1800003600"}},
		"suspended": {ratelimit.SuspendedPlan("inner"), 0,
			[]string{"X-Ratelimit-Limit: 0", "X-Ratelimit-Remaining: 0"}},
		"unlimited": {ratelimit.UnlimitedPlan("inner"), 0,
			[]string{"X-Ratelimit-Limit: 60", "X-Ratelimit-Remaining: 20", "X-Ratelimit-Reset: 1800000060"}},
		"the draft": {ratelimit.MustPlan("inner", ratelimit.Penalty{}, ratelimit.PerHour(7)), limit.DraftRateLimit,
			[]string{`Ratelimit-Policy: "hour";q=7;w=3600`, `Ratelimit: "hour";r=6;t=3600`,
				"X-Ratelimit-Limit: 60", "X-Ratelimit-Remaining: 20", "X-Ratelimit-Reset: 1800000060"}},
		"no headers": {ratelimit.MustPlan("inner", ratelimit.Penalty{}, ratelimit.PerHour(7)), limit.NoHeaders,
			[]string{"X-Ratelimit-Limit: 60", "X-Ratelimit-Remaining: 20", "X-Ratelimit-Reset: 1800000060"}},
	} {
		inner := handler(t, newEngine(t, &at), ratelimit.Caller{Subject: "a", Plan: c.inner}, limit.Options{Headers: c.set}, ok)
		h := handler(t, newEngine(t, &at), ratelimit.Caller{Subject: "a", Plan: outer},
			limit.Options{Cost: func(*http.Request) int64 { return 40 }}, inner.ServeHTTP)
		if diff := cmp.Diff(c.want, rateFields(get(h).Header())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A denial without a decision of the engine has Retry-After in every set too.
func TestHeaderSetsWhileTheEngineIsDown(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(2))
	for _, set := range []limit.HeaderSet{0, limit.DraftRateLimit, limit.NoHeaders} {
		h := handler(t, broken{ratelimit.ErrUnavailable}, ratelimit.Caller{Subject: "a", Plan: plan}, limit.Options{Headers: set}, ok)
		if w := get(h); w.Code != 503 || w.Header().Get("Retry-After") != "1" {
			t.Errorf("set %d: got %d with Retry-After %q, want 503 with 1", set, w.Code, w.Header().Get("Retry-After"))
		}
	}
}

// NoHeaders next to a set with headers is a contradiction.
func TestNewRefusesHeaderSets(t *testing.T) {
	for _, set := range []limit.HeaderSet{limit.NoHeaders | limit.XRateLimit, limit.NoHeaders << 1} {
		_, err := limit.New(careless{}, func(*http.Request) (ratelimit.Caller, error) { return ratelimit.Caller{}, nil }, limit.Options{Headers: set})
		if err == nil || !strings.Contains(err.Error(), "Options.Headers") {
			t.Errorf("set %d: got error %v, want one that names Options.Headers", set, err)
		}
	}
}
