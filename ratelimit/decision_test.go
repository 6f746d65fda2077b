package ratelimit_test

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
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
	d.Settle()
	return d
}

func TestSettle(t *testing.T) {
	type states = []ratelimit.State
	for _, test := range []struct {
		name       string
		d          ratelimit.Decision
		applicable int
		retryAfter time.Duration
	}{
		{"allowed: the least remaining", decision(ratelimit.Allowed, 1, states{{7, now + 5}, {3, now + 50}, {9, now + 500}}...), 1, 0},
		{"allowed, tie: the later reset", decision(ratelimit.Allowed, 1, states{{3, now + 5}, {3, now + 500}, {3, now + 50}}...), 1, 0},
		{"limited: the one that refuses", decision(ratelimit.Limited, 1, states{{7, now + 5}, {0, now + 50}, {9, now + 500}}...), 1, 49_750 * time.Millisecond},
		{"limited by two: the later reset", decision(ratelimit.Limited, 1, states{{0, now + 5}, {0, now + 50}, {9, now + 500}}...), 1, 49_750 * time.Millisecond},
		{"limited by cost: not the least remaining", decision(ratelimit.Limited, 5, states{{1, now + 5}, {4, now + 50}, {9, now + 500}}...), 1, 49_750 * time.Millisecond},
		{"limited at the very end", decision(ratelimit.Limited, 1, states{{0, now}}...), 0, 1},
	} {
		if test.d.Applicable != test.applicable || test.d.RetryAfter != test.retryAfter {
			t.Errorf("%s: got quota %d and %v, want quota %d and %v",
				test.name, test.d.Applicable, test.d.RetryAfter, test.applicable, test.retryAfter)
		}
	}
}

func TestBannedDecision(t *testing.T) {
	d := decision(ratelimit.Banned, 1, ratelimit.State{Remaining: 7, Reset: now + 5}, ratelimit.State{Remaining: 9, Reset: now + 50})
	d.BanEnds = now + 20
	d.Settle()
	if d.Remaining() != 0 || d.Reset() != now+20 || d.RetryAfterSeconds() != 20 {
		t.Errorf("during a ban: %d remaining, reset %d, retry after %d; want 0, the end of the ban, 20",
			d.Remaining(), d.Reset(), d.RetryAfterSeconds())
	}
	d.States[1].Remaining = 0
	d.Settle()
	if d.Reset() != now+50 || d.RetryAfterSeconds() != 50 {
		t.Errorf("a used up quota that outlasts the ban: reset %d, retry after %d; want 50 seconds for both", d.Reset()-now, d.RetryAfterSeconds())
	}
	d.RetryAfter = math.MaxInt64 // of an engine written elsewhere
	if got := d.RetryAfterSeconds(); got != math.MaxInt64/int64(time.Second) {
		t.Errorf("RetryAfterSeconds is %d for the longest wait, want 9223372036", got)
	}
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
		test.d.SetHeaders(h)
		test.d.SetDraftHeaders(h)
		if diff := cmp.Diff(test.want, h); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestFieldsOfABan(t *testing.T) {
	d := decision(ratelimit.Banned, 1, ratelimit.State{Remaining: 7, Reset: now + 5})
	d.BanEnds = now + 20
	d.Settle()
	h := http.Header{}
	d.SetHeaders(h)
	d.SetDraftHeaders(h)
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
	d.SetHeaders(h)
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
		d.SetHeaders(h)
	}
}

// A decision that is settled again, after its outcome changed, keeps nothing of
// what it was.
func TestSettleAgain(t *testing.T) {
	d := decision(ratelimit.Limited, 1, ratelimit.State{Remaining: 7, Reset: now + 5}, ratelimit.State{Remaining: 0, Reset: now + 50})
	d.Outcome, d.States[1].Remaining = ratelimit.Allowed, 9
	d.Settle()
	if d.Applicable != 0 || d.RetryAfter != 0 {
		t.Errorf("got quota %d and %v, want quota 0 and no wait", d.Applicable, d.RetryAfter)
	}
}
