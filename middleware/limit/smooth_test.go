package limit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// The quota that is shown after a denial refuses the longest, though its reset may be the
// earlier one.
func TestSmoothDenial(t *testing.T) {
	p := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerHour(3600).Smooth(100))
	d := ratelimit.Decision{
		Outcome: ratelimit.Limited, Plan: p, Cost: 2, Time: now*1e9 + 250_000_000,
		States: [4]ratelimit.State{{Remaining: 1, Reset: now + 10}, {Remaining: 0, Reset: now + 100}},
	}
	d.Receipt.Rounded[1] = 1 << 31
	engine.Complete(&d)
	if d.Applicable != 0 || d.RetryAfter != 9750*time.Millisecond {
		t.Errorf("with ten seconds to the end of the minute: quota %d for %v, want the minute for 9.75s", d.Applicable, d.RetryAfter)
	}
	d.States[0].Remaining = 5
	engine.Complete(&d) // the bucket is full in 99.25 seconds, and half a second after now it is empty
	if d.Applicable != 1 || d.RetryAfter != 1250*time.Millisecond {
		t.Errorf("with room in the minute: quota %d for %v, want the smooth one for 1.25s", d.Applicable, d.RetryAfter)
	}
	h := http.Header{}
	limit.XRateLimit.Set(h, &d)
	limit.DraftRateLimit.Set(h, &d)
	want := http.Header{
		"X-Ratelimit-Limit": {"100"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1800000100"}, "Retry-After": {"2"},
		"Ratelimit-Policy": {`"minute";q=60;w=60, "smooth-hour";q=3600;w=3600`},
		"Ratelimit":        {`"minute";r=5;t=10, "smooth-hour";r=0;t=100`},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("the fields differ (-want +got):\n%s", diff)
	}
	d.Outcome, d.BanEnds = ratelimit.Banned, now+30
	engine.Complete(&d)
	if d.RetryAfter != 29_750*time.Millisecond {
		t.Errorf("during a ban: %v, want 29.75s", d.RetryAfter)
	}
	u := engine.Uncounted(p, 1, time.Unix(now, 1))
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
