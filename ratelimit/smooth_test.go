package ratelimit_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

func TestSmoothText(t *testing.T) {
	for text, want := range map[string]ratelimit.Quota{
		"60/minute smooth 10":     ratelimit.PerMinute(60).Smooth(10),
		"60/minute smooth 60":     ratelimit.PerMinute(60).Smooth(60),
		"1000000/second smooth 1": ratelimit.PerSecond(1_000_000).Smooth(1),
		"5/2s smooth 5":           ratelimit.Quota{Limit: 5, Window: 2 * time.Second}.Smooth(5),
	} {
		q, err := parse(text)
		if err != nil || q != want || q.String() != text {
			t.Errorf("%q: got %+v, %v, written as %q, want %+v", text, q, err, q, want)
		}
	}
	q, err := parse("1_000/minute smooth 1_00")
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
		_, err := parse(text)
		if want := `ratelimit: quota "` + text + `"` + want; err == nil || err.Error() != want {
			t.Errorf("%q: got error %v, want %s", text, err, want)
		}
	}
}

func TestSmoothPlans(t *testing.T) {
	p := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerHour(500), ratelimit.PerMinute(60).Smooth(10), ratelimit.PerMinute(90))
	if got, want := p.String(), "free [90/minute 60/minute smooth 10 500/hour]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var kinds []time.Duration
	for i := range engine.Of(p).Len() {
		kinds = append(kinds, engine.Of(p).Kind(i))
	}
	if diff := cmp.Diff([]time.Duration{time.Minute, -time.Minute, time.Hour}, kinds); diff != "" {
		t.Errorf("the kinds of windows differ (-want +got):\n%s", diff)
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
