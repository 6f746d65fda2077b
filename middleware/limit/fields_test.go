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
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

const now = 1_800_000_000 // Unix seconds

// decision returns a settled decision at now and a quarter of a second.
func decision(outcome ratelimit.Outcome, states ...ratelimit.State) ratelimit.Decision {
	quotas := []ratelimit.Quota{ratelimit.PerMinute(60), ratelimit.PerHour(500)}
	d := ratelimit.Decision{
		Outcome: outcome, Cost: 1, Time: now*1e9 + 250e6,
		Plan: ratelimit.MustPlan("p", ratelimit.Penalty{}, quotas[:len(states)]...),
	}
	copy(d.States[:], states)
	if outcome == ratelimit.Banned {
		d.BanEnds = now + 20
	}
	engine.Complete(&d)
	return d
}

func TestFields(t *testing.T) {
	const policy = `"minute";q=60;w=60, "hour";q=500;w=3600`
	// softly is a decision under other quotas, of which so many units are used.
	softly := func(outcome ratelimit.Outcome, quotas []ratelimit.Quota, used ...int64) ratelimit.Decision {
		d := engine.Uncounted(ratelimit.MustPlan("p", ratelimit.Penalty{}, quotas...), 1, time.Unix(now, 0))
		for i := range used {
			d.States[i].Remaining -= used[i]
			d.States[i].Reset = now + 30
		}
		d.Outcome = outcome
		engine.Complete(&d)
		return d
	}
	soft, hard := ratelimit.PerMinute(60).Soft(), ratelimit.PerHour(500)
	widest := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(1<<53-1))
	for name, test := range map[string]struct {
		d    ratelimit.Decision
		want http.Header
	}{
		"no plan": {ratelimit.Decision{}, http.Header{}},
		"allowed": {
			decision(ratelimit.Allowed, ratelimit.State{Remaining: 59, Reset: now + 30}, ratelimit.State{Remaining: 400, Reset: now + 3000}),
			http.Header{
				"X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Remaining": {"59"}, "X-Ratelimit-Reset": {"1800000030"},
				"Ratelimit-Policy": {policy}, "Ratelimit": {`"minute";r=59;t=30, "hour";r=400;t=3000`},
			},
		},
		"a soft quota alone": {
			softly(ratelimit.Allowed, []ratelimit.Quota{soft}, 41),
			http.Header{
				"X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Remaining": {"19"}, "X-Ratelimit-Reset": {"1800000030"},
				"Ratelimit-Policy": {`"minute";q=60;w=60`}, "Ratelimit": {`"minute";r=19;t=30`},
			},
		},
		"soft quotas alone, beyond their limits: the most used": {
			softly(ratelimit.Allowed, []ratelimit.Quota{soft, hard.Soft()}, 90, 600),
			http.Header{
				"X-Ratelimit-Limit": {"500"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1800000030"},
				"Ratelimit-Policy": {policy}, "Ratelimit": {`"minute";r=0;t=30, "hour";r=0;t=30`},
			},
		},
		"a hard quota beside a soft one beyond its limit": {
			softly(ratelimit.Allowed, []ratelimit.Quota{soft, hard}, 90, 7),
			http.Header{
				"X-Ratelimit-Limit": {"500"}, "X-Ratelimit-Remaining": {"493"}, "X-Ratelimit-Reset": {"1800000030"},
				"Ratelimit-Policy": {`"hour";q=500;w=3600`}, "Ratelimit": {`"hour";r=493;t=30`},
			},
		},
		"refused by the hard quota": {
			softly(ratelimit.Limited, []ratelimit.Quota{soft, hard}, 90, 500),
			http.Header{
				"X-Ratelimit-Limit": {"500"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1800000030"}, "Retry-After": {"30"},
				"Ratelimit-Policy": {`"hour";q=500;w=3600`}, "Ratelimit": {`"hour";r=0;t=30`},
			},
		},
		"more than a structured field can say": {
			ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: widest, Time: now * 1e9, States: [4]ratelimit.State{{Remaining: 1<<53 - 2, Reset: now + 30}}},
			http.Header{
				"X-Ratelimit-Limit": {"9007199254740991"}, "X-Ratelimit-Remaining": {"9007199254740990"}, "X-Ratelimit-Reset": {"1800000030"},
				"Ratelimit-Policy": {`"minute";q=999999999999999;w=60`}, "Ratelimit": {`"minute";r=999999999999999;t=30`},
			},
		},
		"a window that seems to have ended": { // the clock of the engine stepped back
			decision(ratelimit.Allowed, ratelimit.State{Remaining: 59, Reset: now - 5}),
			http.Header{
				"X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Remaining": {"59"}, "X-Ratelimit-Reset": {"1799999995"},
				"Ratelimit-Policy": {`"minute";q=60;w=60`}, "Ratelimit": {`"minute";r=59;t=0`},
			},
		},
		"limited": {
			decision(ratelimit.Limited, ratelimit.State{Remaining: 20, Reset: now + 30}, ratelimit.State{Remaining: 0, Reset: now + 3000}),
			http.Header{
				"X-Ratelimit-Limit": {"500"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1800003000"}, "Retry-After": {"3000"},
				"Ratelimit-Policy": {policy}, "Ratelimit": {`"minute";r=20;t=30, "hour";r=0;t=3000`},
			},
		},
		"banned": {
			decision(ratelimit.Banned, ratelimit.State{Remaining: 7, Reset: now + 5}),
			http.Header{
				"X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1800000020"}, "Retry-After": {"20"}, "X-Ratelimit-Banned": {"true"},
				"Ratelimit-Policy": {`"minute";q=60;w=60`}, "Ratelimit": {`"minute";r=0;t=20`},
			},
		},
	} {
		h := http.Header{}
		limit.XRateLimit.Set(h, &test.d)
		limit.DraftRateLimit.Set(h, &test.d)
		if diff := cmp.Diff(test.want, h); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Appending to a header of one response must not change another response.
func TestFieldsDoNotShare(t *testing.T) {
	d := decision(ratelimit.Limited, ratelimit.State{Reset: now + 30})
	h := http.Header{}
	limit.XRateLimit.Set(h, &d)
	h.Add("X-RateLimit-Limit", "x")
	h.Add("X-RateLimit-Remaining", "x")
	h.Add("X-RateLimit-Reset", "x")
	if got := []string{h["X-Ratelimit-Remaining"][0], h["X-Ratelimit-Reset"][0], h["Retry-After"][0]}; got[0] != "0" || got[1] != "1800000030" || got[2] != "30" {
		t.Errorf("after appending to the fields before them: %q", got)
	}
}

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

// Of two middlewares the inner one's quota is shown, whole: nothing of another quota is
// left in its set. The fields of other sets stay.
func TestHeaderSetsOfTwoMiddlewares(t *testing.T) {
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
		inner := handler(atNow(), ratelimit.Caller{Subject: "a", Plan: c.inner}, limit.Options{Headers: c.set}, ok)
		h := handler(atNow(), ratelimit.Caller{Subject: "a", Plan: outer},
			limit.Options{Cost: func(*http.Request) int64 { return 40 }}, inner.ServeHTTP)
		if diff := cmp.Diff(c.want, rateFields(get(h).Header())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The fields cost two allocations.
func TestHeaderAllocations(t *testing.T) {
	h, d := make(http.Header, 4), decision(ratelimit.Limited, ratelimit.State{Reset: now + 30})
	if n := testing.AllocsPerRun(100, func() { limit.XRateLimit.Set(h, &d) }); n != 2 {
		t.Errorf("the fields cost %v allocations, want 2", n)
	}
}
