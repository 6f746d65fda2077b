package limit_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

const now = 1_800_000_000 // Unix seconds

// decision returns a settled decision at now and a quarter of a second.
func decision(outcome ratelimit.Outcome, cost int64, states ...ratelimit.State) ratelimit.Decision {
	quotas := []ratelimit.Quota{ratelimit.PerMinute(60), ratelimit.PerHour(500), ratelimit.PerDay(1000)}
	d := ratelimit.Decision{
		Outcome: outcome, Cost: cost, Time: now*1e9 + 250e6,
		Plan: ratelimit.MustPlan("p", ratelimit.Penalty{}, quotas[:len(states)]...),
	}
	copy(d.States[:], states)
	engine.Complete(&d)
	return d
}

func TestFields(t *testing.T) {
	for _, test := range []struct {
		name string
		d    ratelimit.Decision
		want http.Header
	}{
		{
			"allowed",
			decision(ratelimit.Allowed, 1, ratelimit.State{Remaining: 59, Reset: now + 30}, ratelimit.State{Remaining: 400, Reset: now + 3000}),
			http.Header{
				"X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Remaining": {"59"}, "X-Ratelimit-Reset": {"1800000030"},
				"Ratelimit-Policy": {`"minute";q=60;w=60, "hour";q=500;w=3600`},
				"Ratelimit":        {`"minute";r=59;t=30, "hour";r=400;t=3000`},
			},
		},
		{
			"limited",
			decision(ratelimit.Limited, 1, ratelimit.State{Remaining: 20, Reset: now + 30}, ratelimit.State{Remaining: 0, Reset: now + 3000}),
			http.Header{
				"X-Ratelimit-Limit": {"500"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1800003000"}, "Retry-After": {"3000"},
				"Ratelimit-Policy": {`"minute";q=60;w=60, "hour";q=500;w=3600`},
				"Ratelimit":        {`"minute";r=20;t=30, "hour";r=0;t=3000`},
			},
		},
	} {
		h := http.Header{}
		limit.XRateLimit.Set(h, &test.d)
		limit.DraftRateLimit.Set(h, &test.d)
		if diff := cmp.Diff(test.want, h); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestFieldsOfABan(t *testing.T) {
	d := decision(ratelimit.Banned, 1, ratelimit.State{Remaining: 7, Reset: now + 5})
	d.BanEnds = now + 20
	engine.Complete(&d)
	h := http.Header{}
	limit.XRateLimit.Set(h, &d)
	limit.DraftRateLimit.Set(h, &d)
	want := http.Header{
		"X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1800000020"}, "Retry-After": {"20"},
		"Ratelimit-Policy": {`"minute";q=60;w=60`}, "Ratelimit": {`"minute";r=0;t=20`},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Appending to a header of one response must not change another response.
func TestFieldsDoNotShare(t *testing.T) {
	d := decision(ratelimit.Limited, 1, ratelimit.State{Reset: now + 30})
	h := http.Header{}
	limit.XRateLimit.Set(h, &d)
	h.Add("X-RateLimit-Limit", "x")
	h.Add("X-RateLimit-Remaining", "x")
	h.Add("X-RateLimit-Reset", "x")
	if got := []string{h["X-Ratelimit-Remaining"][0], h["X-Ratelimit-Reset"][0], h["Retry-After"][0]}; got[0] != "0" || got[1] != "1800000030" || got[2] != "30" {
		t.Errorf("after appending to the fields before them: %q", got)
	}
}

func BenchmarkSetHeaders(b *testing.B) {
	d := decision(ratelimit.Limited, 1, ratelimit.State{Remaining: 0, Reset: now + 30}, ratelimit.State{Remaining: 400, Reset: now + 3000})
	h := http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		limit.XRateLimit.Set(h, &d)
	}
}
