package ratelimit_test

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
)

func TestSmoothText(t *testing.T) {
	for text, want := range map[string]ratelimit.Quota{
		"60/minute smooth 10":     ratelimit.PerMinute(60).Smooth(10),
		"60/minute smooth 60":     ratelimit.PerMinute(60).Smooth(60),
		"1000000/second smooth 1": ratelimit.PerSecond(1_000_000).Smooth(1),
		"5/2s smooth 5":           ratelimit.Quota{Limit: 5, Window: 2 * time.Second}.Smooth(5),
	} {
		q, err := ratelimit.ParseQuota(text)
		if err != nil || q != want || q.String() != text {
			t.Errorf("ParseQuota(%q): got %+v, %v, written as %q, want %+v", text, q, err, q, want)
		}
	}
	q, err := ratelimit.ParseQuota("1_000/minute smooth 1_00")
	if err != nil || q != ratelimit.PerMinute(1000).Smooth(100) || q.Burst() != 100 || q.Limit != 1000 || q.Window != time.Minute {
		t.Errorf("got %+v, %v", q, err)
	}
	if burst := ratelimit.PerMinute(60).Burst(); burst != 0 {
		t.Errorf("a quota that is not smooth has the burst %d, want 0", burst)
	}
	const burst = ": the burst must be a whole number from 1 to the limit, such as 60/minute smooth 10"
	for text, want := range map[string]string{
		"60/minute smooth":        burst,
		"60/minute smooth ":       burst,
		"60/minute smooth10":      burst,
		"60/minute smooth -1":     burst,
		"60/minute smooth ten":    burst,
		"60/minute smooth 5 ":     burst,
		"60/minute smooth 0":      ": the burst must be from 1 to the limit of 60, got 0",
		"60/minute smooth 61":     ": the burst must be from 1 to the limit of 60, got 61",
		"1000001/second smooth 9": ": a smooth quota must be at most 1000000 units a second, got 1000001 in 1s",
		"60/month smooth 5":       ": smooth is for windows of fixed lengths only",
		"60/day in UTC smooth 5":  ": smooth is for windows of fixed lengths only",
	} {
		_, err := ratelimit.ParseQuota(text)
		if want := `ratelimit: quota "` + text + `"` + want; err == nil || err.Error() != want {
			t.Errorf("ParseQuota(%q): got error %v, want %s", text, err, want)
		}
	}
}

func TestSmoothPlans(t *testing.T) {
	p := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerHour(500), ratelimit.PerMinute(60).Smooth(10), ratelimit.PerMinute(90))
	if got, want := p.String(), "free [90/minute 60/minute smooth 10 500/hour]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var kinds []time.Duration
	for i := range p.Len() {
		kinds = append(kinds, p.Kind(i))
	}
	if diff := cmp.Diff([]time.Duration{time.Minute, -time.Minute, time.Hour}, kinds); diff != "" || !p.Smooth() || !p.WithoutPenalty().Smooth() {
		t.Errorf("the kinds of windows differ (-want +got):\n%s", diff)
	}
	if ratelimit.MustPlan("fixed", ratelimit.Penalty{}, ratelimit.PerMinute(60)).Smooth() {
		t.Error("a plan with fixed windows is smooth")
	}
	for want, quotas := range map[string][]ratelimit.Quota{
		"a second smooth quota with the window 1m;": {ratelimit.PerMinute(60).Smooth(10), ratelimit.PerMinute(90).Smooth(9)},
		"burst of Quota.Smooth must be from 1":      {ratelimit.PerMinute(60).Smooth(0)},
		"must be from 1 to the limit":               {ratelimit.PerMinute(60).Smooth(61)},
		"windows of fixed lengths only":             {ratelimit.PerDay(60).Smooth(6).In(time.UTC)},
	} {
		if _, err := ratelimit.NewPlan("", ratelimit.Penalty{}, quotas...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a plan of %v: got error %v, want one with %q", quotas, err, want)
		}
	}
}

// A quota that is refused has the burst that Smooth got, in its text and in the error.
func TestSmoothOutOfRange(t *testing.T) {
	for burst, got := range map[int64]string{0: "0", -1: "-1", math.MinInt64: "-9223372036854775807", 61: "61", math.MaxInt64: "9223372036854775807"} {
		q := ratelimit.PerMinute(60).Smooth(burst)
		if want := "60/minute smooth " + got; q.String() != want {
			t.Errorf("Smooth(%d) is %v, want %s", burst, q, want)
		}
		_, err := ratelimit.NewPlan("", ratelimit.Penalty{}, q)
		if want := "from 1 to the limit of 60, got " + got; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("a plan of Smooth(%d): error %v, want %s", burst, err, want)
		}
	}
}

// The quota that is shown after a denial refuses the longest, though its reset may be the
// earlier one.
func TestSmoothDenial(t *testing.T) {
	p := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerHour(3600).Smooth(100))
	d := ratelimit.Decision{
		Outcome: ratelimit.Limited, Plan: p, Cost: 2, Time: now*1e9 + 250_000_000,
		States:  [ratelimit.MaxQuotas]ratelimit.State{{Remaining: 1, Reset: now + 10}, {Remaining: 0, Reset: now + 100}},
		Rounded: [ratelimit.MaxQuotas]uint32{0, 1 << 31},
	}
	d.Settle()
	if d.Applicable != 0 || d.RetryAfter != 9750*time.Millisecond {
		t.Errorf("with ten seconds to the end of the minute: quota %d for %v, want the minute for 9.75s", d.Applicable, d.RetryAfter)
	}
	d.States[0].Remaining = 5
	d.Settle() // the bucket is full in 99.25 seconds, and half a second after now it is empty
	if d.Applicable != 1 || d.RetryAfter != 1250*time.Millisecond {
		t.Errorf("with room in the minute: quota %d for %v, want the smooth one for 1.25s", d.Applicable, d.RetryAfter)
	}
	h := http.Header{}
	d.SetHeaders(h)
	d.SetDraftHeaders(h)
	want := http.Header{
		"X-Ratelimit-Limit": {"100"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1800000100"}, "Retry-After": {"2"},
		"Ratelimit-Policy": {`"minute";q=60;w=60, "smooth-hour";q=3600;w=3600`},
		"Ratelimit":        {`"minute";r=5;t=10, "smooth-hour";r=0;t=100`},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("the fields differ (-want +got):\n%s", diff)
	}
	d.Outcome, d.BanEnds = ratelimit.Banned, now+30
	d.Settle()
	if d.RetryAfter != 29_750*time.Millisecond {
		t.Errorf("during a ban: %v, want 29.75s", d.RetryAfter)
	}
	u := p.Uncounted(1, time.Unix(now, 1))
	if u.States[1] != (ratelimit.State{Remaining: 100, Reset: now + 1}) || u.Applicable != 0 {
		t.Errorf("without an engine: %+v", u.States)
	}
}

func TestSmoothDenialTexts(t *testing.T) {
	const wait = " Wait as long as Retry-After says."
	p := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(10))
	for _, tt := range []struct {
		costs []int64
		want  string
	}{
		{nil, "You have reached the limit of 60 requests per minute, at most 10 at once."},
		{[]int64{5, 5, 5}, "This request costs 5 units, and 0 are left now of the limit of 60 units per minute, at most 10 at once."},
		{[]int64{9, 5}, "This request costs 5 units, and 1 is left now of the limit of 60 units per minute, at most 10 at once."},
	} {
		body := denied(t, p, tt.costs...)
		if got := body["detail"]; got != tt.want+wait {
			t.Errorf("costs %v: got %q, want %q", tt.costs, got, tt.want+wait)
		}
	}
	if got, want := denied(t, p, 11)["detail"], "This request costs 11 units, but your plan allows at most 10 at once."; got != want {
		t.Errorf("a cost over the burst: got %q, want %q", got, want)
	}
	if diff := cmp.Diff([]any{"smooth-minute"}, denied(t, p)["violated-policies"]); diff != "" {
		t.Errorf("the policies differ (-want +got):\n%s", diff)
	}
}

// Engines find the interval and the burst of each smooth quota, also of a plan without its
// penalty, and nothing of other quotas.
func TestBucket(t *testing.T) {
	p := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(7).Smooth(3), ratelimit.PerDay(1000))
	for _, p := range []*ratelimit.Plan{p, p.WithoutPenalty()} {
		interval, burst := p.Bucket(0)
		if want := uint64(60<<32/7 + 1); interval != want || burst != 3 {
			t.Errorf("a unit comes back in %d of 2⁻³² seconds, and the burst is %d; want %d and 3", interval, burst, want)
		}
		if interval, burst := p.Bucket(1); interval != 0 || burst != 0 {
			t.Errorf("a fixed window has an interval of %d and a burst of %d", interval, burst)
		}
	}
}
