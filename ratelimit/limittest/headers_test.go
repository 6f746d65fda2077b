package limittest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/limittest"
)

const draftAndX = ratelimit.XRateLimit | ratelimit.DraftRateLimit

// CheckHeaders reads what a HeaderSet writes, whichever it is, and misses it in what
// another one writes.
func TestCheckHeadersOfEverySet(t *testing.T) {
	sets := []ratelimit.HeaderSet{
		0, ratelimit.XRateLimit, ratelimit.DraftRateLimit, draftAndX, ratelimit.NoHeaders,
	}
	penalty := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	fixed := ratelimit.MustPlan("fixed", penalty, ratelimit.PerMinute(2), ratelimit.PerDay(50))
	smooth := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(2))
	for _, c := range []struct {
		name   string
		plan   *ratelimit.Plan
		before int // requests
		want   limittest.Fields
	}{
		{"admitted", fixed, 0, limittest.Fields{Limit: 2, Remaining: 1}},
		{"limited", fixed, 2, limittest.Fields{Limit: 2, RetryAfter: time.Minute}},
		{"banned", fixed, 3, limittest.Fields{Limit: 2, RetryAfter: time.Hour}},
		{"a smooth quota", smooth, 0, limittest.Fields{Limit: 2, Remaining: 1}},
		{"a smooth quota, limited", smooth, 2, limittest.Fields{Limit: 2, RetryAfter: time.Second}},
		{"without quotas", ratelimit.UnlimitedPlan("all"), 0, limittest.Fields{}},
		{"suspended", ratelimit.SuspendedPlan("none"), 0, limittest.Fields{}},
	} {
		engine := newEngine(t, limittest.NewClock(noon))
		for range c.before {
			engine.Take(t.Context(), "ann", c.plan, 1)
		}
		d, err := engine.Take(t.Context(), "ann", c.plan, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range sets {
			header := http.Header{}
			set.Set(header, &d)
			want := c.want
			want.Headers = set
			if set == ratelimit.NoHeaders {
				want.Limit, want.Remaining = 0, 0
			}
			if got := check(t, header, want); got != "" {
				t.Errorf("%s, set %d: CheckHeaders reports %q about %v", c.name, set, got, header)
			}
			if c.want.Limit == 0 {
				continue
			}
			for _, field := range fieldsOf[set] {
				without := header.Clone()
				delete(without, field)
				if check(t, without, want) == "" {
					t.Errorf("%s, set %d: CheckHeaders does not miss %s", c.name, set, field)
				}
			}
			more := want
			more.Remaining++
			if check(t, header, more) == "" {
				t.Errorf("%s, set %d: CheckHeaders accepts a unit more than there is", c.name, set)
			}
		}
	}
}

// The fields that a set must have.
var fieldsOf = map[ratelimit.HeaderSet][]string{
	0:                        {"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
	ratelimit.XRateLimit:     {"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
	ratelimit.DraftRateLimit: {"Ratelimit", "Ratelimit-Policy"},
	draftAndX:                {"X-Ratelimit-Limit", "Ratelimit", "Ratelimit-Policy"},
}

func TestCheckHeadersOfOtherSets(t *testing.T) {
	x := http.Header{"X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Remaining": {"59"}, "X-Ratelimit-Reset": {"1772366460"}}
	draft := func(policy, state string) http.Header {
		return http.Header{"Ratelimit-Policy": {policy}, "Ratelimit": {state}}
	}
	const policy, state = `"minute";q=60;w=60, "local-day";q=1000`, `"minute";r=59;t=17, "local-day";r=998;t=40000`
	both := draft(policy, state)
	twice := both.Clone()
	twice.Add("RateLimit", state)
	fields := func(set ratelimit.HeaderSet) limittest.Fields {
		return limittest.Fields{Limit: 60, Remaining: 59, Headers: set}
	}
	for _, c := range []struct {
		name   string
		header http.Header
		want   limittest.Fields
		fails  string // part of the text; "": it does not fail
	}{
		{"the draft", both, fields(ratelimit.DraftRateLimit), ""},
		{"of both quotas the other", both, limittest.Fields{Limit: 1000, Remaining: 998, Headers: ratelimit.DraftRateLimit}, ""},
		{"the limit of one and the rest of the other", both, limittest.Fields{Limit: 60, Remaining: 998, Headers: ratelimit.DraftRateLimit}, "want a quota with 998 of 60 left"},
		{"the draft is not looked for", func() http.Header { h := x.Clone(); h.Set("RateLimit", "no"); return h }(), fields(0), ""},
		{"the draft is not looked for without a limit", both, limittest.Fields{}, ""},
		{"X-RateLimit-Limit is not looked for", func() http.Header { h := both.Clone(); h.Set("X-RateLimit-Limit", "no"); return h }(), fields(ratelimit.DraftRateLimit), ""},
		{"the draft without a limit", both, limittest.Fields{Headers: ratelimit.DraftRateLimit}, "want none"},
		{"the draft is missing", x, fields(ratelimit.DraftRateLimit), "0 lines of RateLimit-Policy and 0 of RateLimit, want one of each"},
		{"twice", twice, fields(ratelimit.DraftRateLimit), "1 lines of RateLimit-Policy and 2 of RateLimit"},
		{"a quota is missing", draft(policy, `"minute";r=59;t=17`), fields(ratelimit.DraftRateLimit), "RateLimit-Policy has 2 quotas and RateLimit 1"},
		{"other names", draft(`"hour";q=60;w=3600`, `"minute";r=59;t=17`), fields(ratelimit.DraftRateLimit), "do not belong together"},
		{"no time", draft(`"minute";q=60;w=60`, `"minute";r=59`), fields(ratelimit.DraftRateLimit), "malformed"},
		{"no name", draft(`60;w=60`, `"minute";r=59;t=1`), fields(ratelimit.DraftRateLimit), "malformed"},
		{"a Retry-After", func() http.Header { h := both.Clone(); h.Set("Retry-After", "3"); return h }(), fields(ratelimit.DraftRateLimit), "retry after 3s, want 59 of 60 left"},
		{"a reset, which the draft lacks", both, limittest.Fields{Limit: 60, Remaining: 59, Reset: noon, Headers: ratelimit.DraftRateLimit}, "Fields.Reset is X-RateLimit-Reset"},
		{"none", http.Header{"Retry-After": {"1"}}, limittest.Fields{RetryAfter: time.Second, Headers: ratelimit.NoHeaders}, ""},
		{"none is wanted", x, limittest.Fields{Headers: ratelimit.NoHeaders}, `X-RateLimit-Limit: ["60"], want none`},
		{"none of the draft is wanted", both, limittest.Fields{Headers: ratelimit.NoHeaders}, "want none"},
		{"none, and a limit", http.Header{}, fields(ratelimit.NoHeaders), "no fields, want 59 of 60 left"},
	} {
		if got := check(t, c.header, c.want); (got == "") != (c.fails == "") || !strings.Contains(got, c.fails) {
			t.Errorf("%s: CheckHeaders reports %q, want %q", c.name, got, c.fails)
		}
	}
}

// check returns what CheckHeaders reports.
func check(t *testing.T, h http.Header, want limittest.Fields) string {
	f := &failures{TB: t}
	limittest.CheckHeaders(f, h, want)
	return strings.Join(f.texts, "\n")
}
