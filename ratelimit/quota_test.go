package ratelimit_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// parse returns the quota that has a text form.
func parse(text string) (q ratelimit.Quota, err error) {
	err = q.UnmarshalText([]byte(text))
	return q, err
}

func TestParseQuota(t *testing.T) {
	for text, want := range map[string]ratelimit.Quota{
		"60/minute":               ratelimit.PerMinute(60),
		"60/1m":                   ratelimit.PerMinute(60),
		"1000/day":                ratelimit.PerDay(1000),
		"1_000_000/day":           ratelimit.PerDay(1_000_000),
		"5/second":                ratelimit.PerSecond(5),
		"7/hour":                  ratelimit.PerHour(7),
		"5/2s":                    {Limit: 5, Window: 2 * time.Second},
		"1/8784h":                 {Limit: 1, Window: fixedwindow.MaxLength},
		"9007199254740991/minute": ratelimit.PerMinute(fixedwindow.MaxUnits),
	} {
		got, err := parse(text)
		if err != nil || got != want {
			t.Errorf("%q = %v, %v, want %v", text, got, err, want)
		}
		if again, err := parse(got.String()); err != nil || again != want {
			t.Errorf("%q is written as %q, which reads back as %v, %v", text, got, again, err)
		}
	}
}

func TestParseQuotaRefuses(t *testing.T) {
	const (
		form   = ": must be limit/window, such as 60/minute"
		limit  = ": the limit must be a whole number from 1 to 9007199254740991, such as 60 or 1_000_000"
		window = ": the window must be second, minute, hour, day, month, or a duration such as 30s or 168h"
		size   = ": the limit must be from 1 to 9007199254740991, got "
		length = ": the window must be whole seconds from 1s to 8784h, got "
	)
	for text, want := range map[string]string{
		"":                               form,
		"60":                             form,
		"60 per minute":                  form,
		"/minute":                        limit,
		"x/minute":                       limit,
		"+5/minute":                      limit,
		"-5/minute":                      limit,
		"5_/minute":                      limit,
		"5__0/minute":                    limit,
		"_5/minute":                      limit,
		"1.5/minute":                     limit,
		"1e3/minute":                     limit,
		"99999999999999999999999/minute": limit,
		"0/minute":                       size + "0",
		"9007199254740992/minute":        size + "9007199254740992",
		"60/":                            window,
		"60/Minute":                      window,
		"60/minutes":                     window,
		"60/60":                          window,
		"60/minute/1":                    window,
		"60/0s":                          length + "0s",
		"60/500ms":                       length + "500ms",
		"60/1500ms":                      length + "1.5s",
		"60/8785h":                       length + "8785h",
		"60/-1m":                         length + "-1m",
	} {
		_, err := parse(text)
		if want := `ratelimit: quota "` + text + `"` + want; err == nil || err.Error() != want {
			t.Errorf("%q: got error %v, want %s", text, err, want)
		}
	}
}

func TestQuotaInJSON(t *testing.T) {
	b, err := json.Marshal(map[string]ratelimit.Quota{"q": ratelimit.PerMinute(60)})
	if err != nil || string(b) != `{"q":"60/minute"}` {
		t.Errorf("got %s, %v", b, err)
	}
	if _, err := json.Marshal(ratelimit.Quota{}); err == nil {
		t.Error("the zero quota was marshalled, though it does not read back")
	}
	var q ratelimit.Quota
	if err := json.Unmarshal([]byte(`"5/2s"`), &q); err != nil || q != (ratelimit.Quota{Limit: 5, Window: 2 * time.Second}) {
		t.Errorf("got %v, %v", q, err)
	}
	if err := json.Unmarshal([]byte(`"x"`), &q); err == nil {
		t.Error("x was read as a quota")
	}
}

func FuzzParseQuota(f *testing.F) {
	f.Add("60/minute")
	f.Add("1_000/36h")
	f.Add("5/2s")
	f.Add("10000/month from 17 in Europe/Berlin")
	f.Add("1000/day in UTC")
	f.Add("60/minute smooth 10")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := parse(text)
		if err != nil {
			return
		}
		if again, err := parse(q.String()); err != nil || again != q {
			t.Errorf("%q is %+v, written as %q, which reads back as %+v, %v", text, q, q, again, err)
		}
		if _, err := ratelimit.NewPlan("", ratelimit.Penalty{}, q); err != nil {
			t.Errorf("%q is read but makes no plan: %v", text, err)
		}
	})
}

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
		if want := "burst of Quota.Smooth must be from 1 to the limit of 60, got " + got; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("a plan of Smooth(%d): error %v, want %s", burst, err, want)
		}
	}
}
