package ratelimit_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
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
