package ratelimittest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// CheckHeaders and CheckDraftHeaders read what a HeaderSet writes, and miss it in what
// another one writes.
func TestCheckHeadersOfEverySet(t *testing.T) {
	penalty := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	fixed := ratelimit.MustPlan("fixed", penalty, ratelimit.PerMinute(2), ratelimit.PerDay(50))
	smooth := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(2))
	for _, c := range []struct {
		name   string
		plan   *ratelimit.Plan
		before int // requests
		want   ratelimittest.Fields
	}{
		{"admitted", fixed, 0, ratelimittest.Fields{Limit: 2, Remaining: 1}},
		{"limited", fixed, 2, ratelimittest.Fields{Limit: 2, RetryAfter: time.Minute}},
		{"banned", fixed, 3, ratelimittest.Fields{Limit: 2, RetryAfter: time.Hour}},
		{"a smooth quota", smooth, 0, ratelimittest.Fields{Limit: 2, Remaining: 1}},
		{"a smooth quota, limited", smooth, 2, ratelimittest.Fields{Limit: 2, RetryAfter: time.Second}},
		{"without quotas", ratelimit.UnlimitedPlan("all"), 0, ratelimittest.Fields{}},
		{"suspended", ratelimit.SuspendedPlan("none"), 0, ratelimittest.Fields{}},
	} {
		engine := newEngine(t, ratelimittest.NewClock(noon))
		for range c.before {
			engine.Take(t.Context(), "ann", c.plan, 1)
		}
		d, err := engine.Take(t.Context(), "ann", c.plan, 1)
		if err != nil {
			t.Fatal(err)
		}
		for set, fields := range fieldsOf {
			header := http.Header{}
			set.Set(header, &d)
			check := checkerOf(set)
			if got := check(t, header, c.want); got != "" {
				t.Errorf("%s, set %d: the check reports %q about %v", c.name, set, got, header)
			}
			if c.want.Limit == 0 {
				continue
			}
			for _, field := range fields {
				without := header.Clone()
				delete(without, field)
				if check(t, without, c.want) == "" {
					t.Errorf("%s, set %d: the check does not miss %s", c.name, set, field)
				}
			}
			more := c.want
			more.Remaining++
			if check(t, header, more) == "" {
				t.Errorf("%s, set %d: the check accepts a unit more than there is", c.name, set)
			}
		}
	}
}

// checkerOf returns the check of the fields of a set.
func checkerOf(set limit.HeaderSet) func(*testing.T, http.Header, ratelimittest.Fields) string {
	if set == limit.DraftRateLimit {
		return checkDraft
	}
	return check
}

// The fields that a set must have.
var fieldsOf = map[limit.HeaderSet][]string{
	limit.XRateLimit:     {"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
	limit.DraftRateLimit: {"Ratelimit", "Ratelimit-Policy"},
}

func TestCheckDraftHeaders(t *testing.T) {
	x := http.Header{"X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Remaining": {"59"}, "X-Ratelimit-Reset": {"1772366460"}}
	draft := func(policy, state string) http.Header {
		return http.Header{"Ratelimit-Policy": {policy}, "Ratelimit": {state}}
	}
	const policy, state = `"minute";q=60;w=60, "local-day";q=1000`, `"minute";r=59;t=17, "local-day";r=998;t=40000`
	both := draft(policy, state)
	twice := both.Clone()
	twice.Add("RateLimit", state)
	fields := ratelimittest.Fields{Limit: 60, Remaining: 59}
	for _, c := range []struct {
		name   string
		header http.Header
		want   ratelimittest.Fields
		fails  string // part of the text; "": it does not fail
	}{
		{"the draft", both, fields, ""},
		{"of both quotas the other", both, ratelimittest.Fields{Limit: 1000, Remaining: 998}, ""},
		{"the limit of one and the rest of the other", both, ratelimittest.Fields{Limit: 60, Remaining: 998}, "want a quota with 998 of 60 left"},
		{"X-RateLimit-Limit is not looked for", func() http.Header { h := both.Clone(); h.Set("X-RateLimit-Limit", "no"); return h }(), fields, ""},
		{"the draft without a limit", both, ratelimittest.Fields{}, "want none"},
		{"the draft is missing", x, fields, "0 lines of RateLimit-Policy and 0 of RateLimit, want one of each"},
		{"twice", twice, fields, "1 lines of RateLimit-Policy and 2 of RateLimit"},
		{"a quota is missing", draft(policy, `"minute";r=59;t=17`), fields, "RateLimit-Policy has 2 quotas and RateLimit 1"},
		{"other names", draft(`"hour";q=60;w=3600`, `"minute";r=59;t=17`), fields, "do not belong together"},
		{"no time", draft(`"minute";q=60;w=60`, `"minute";r=59`), fields, "malformed"},
		{"no name", draft(`60;w=60`, `"minute";r=59;t=1`), fields, "malformed"},
		{"a Retry-After", func() http.Header { h := both.Clone(); h.Set("Retry-After", "3"); return h }(), fields, "Retry-After: 3s, want 0s"},
		{"a reset, which the draft lacks", both, ratelimittest.Fields{Limit: 60, Remaining: 59, Reset: noon}, "Fields.Reset is X-RateLimit-Reset"},
	} {
		if got := checkDraft(t, c.header, c.want); (got == "") != (c.fails == "") || !strings.Contains(got, c.fails) {
			t.Errorf("%s: CheckDraftHeaders reports %q, want %q", c.name, got, c.fails)
		}
	}
}

// check returns what CheckHeaders reports.
func check(t *testing.T, h http.Header, want ratelimittest.Fields) string {
	f := &failures{TB: t}
	ratelimittest.CheckHeaders(f, h, want)
	return strings.Join(f.texts, "\n")
}

// checkDraft returns what CheckDraftHeaders reports.
func checkDraft(t *testing.T, h http.Header, want ratelimittest.Fields) string {
	f := &failures{TB: t}
	ratelimittest.CheckDraftHeaders(f, h, want)
	return strings.Join(f.texts, "\n")
}
