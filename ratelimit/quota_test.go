package ratelimit_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strings"
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

// A text is read as a quota, which is written as it was read, or as the second text.
func TestQuotaText(t *testing.T) {
	berlin, tokyo := location(t, "Europe/Berlin"), location(t, "Asia/Tokyo")
	for _, test := range []struct {
		text, written string
		want          ratelimit.Quota
	}{
		{"60/minute", "", ratelimit.PerMinute(60)},
		{"60/1m", "60/minute", ratelimit.PerMinute(60)},
		{"1000/day", "", ratelimit.PerDay(1000)},
		{"1_000_000/day", "1000000/day", ratelimit.PerDay(1_000_000)},
		{"5/second", "", ratelimit.PerSecond(5)},
		{"7/hour", "", ratelimit.PerHour(7)},
		{"5/2s", "", ratelimit.Quota{Limit: 5, Window: 2 * time.Second}},
		{"1/8784h", "1/31622400s", ratelimit.Quota{Limit: 1, Window: fixedwindow.MaxLength}},
		{"9007199254740991/minute", "", ratelimit.PerMinute(fixedwindow.MaxUnits)},
		{"60/minute smooth 10", "", ratelimit.PerMinute(60).Smooth(10)},
		{"60/minute smooth 60", "", ratelimit.PerMinute(60).Smooth(60)},
		{"1000000/second smooth 1", "", ratelimit.PerSecond(1_000_000).Smooth(1)},
		{"5/2s smooth 5", "", ratelimit.Quota{Limit: 5, Window: 2 * time.Second}.Smooth(5)},
		{"1_000/minute smooth 1_00", "1000/minute smooth 100", ratelimit.PerMinute(1000).Smooth(100)},
		{"10000/month", "", ratelimit.PerMonth(10000)},
		{"10000/month from 17", "", ratelimit.PerMonth(10000).From(17)},
		{"10000/month from 31", "", ratelimit.PerMonth(10000).From(31)},
		{"10000/month in Europe/Berlin", "", ratelimit.PerMonth(10000).In(berlin)},
		{"10000/month from 17 in Europe/Berlin", "", ratelimit.PerMonth(10000).From(17).In(berlin)},
		{"1000/day in Europe/Berlin", "", ratelimit.PerDay(1000).In(berlin)},
		{"1000/day in UTC", "", ratelimit.PerDay(1000).In(time.UTC)},
		{"1000/day in Etc/GMT+5", "", ratelimit.PerDay(1000).In(location(t, "Etc/GMT+5"))},
		{"1000/minute soft", "", ratelimit.PerMinute(1000).Soft()},
		{"10000/month from 17 in Europe/Berlin soft", "", ratelimit.PerMonth(10000).Soft().In(berlin).From(17)},
		{"5/month from 1", "5/month", ratelimit.PerMonth(5)},
		{"5/month in UTC", "5/month", ratelimit.PerMonth(5)},
		{"5/month from 1 in UTC", "5/month", ratelimit.PerMonth(5)},
	} {
		written := cmp.Or(test.written, test.text)
		got, err := parse(test.text)
		if err != nil || got != test.want || got.String() != written {
			t.Errorf("%q = %+v, %v, written as %q, want %+v, %q", test.text, got, err, got, test.want, written)
		}
		if b, err := got.MarshalText(); err != nil || string(b) != written {
			t.Errorf("%q is marshalled as %q, %v", test.text, b, err)
		}
		if again, err := parse(written); err != nil || again != got {
			t.Errorf("%q is written as %q, which reads back as %v, %v", test.text, written, again, err)
		}
		if got.In(tokyo).In(berlin).Window != got.In(berlin).Window {
			t.Errorf("%q: a window of another kind in another zone", test.text)
		}
	}
	if q := ratelimit.PerMinute(1000).Smooth(100); q.Burst() != 100 || q.Limit != 1000 || q.Window != time.Minute || ratelimit.PerMinute(60).Burst() != 0 {
		t.Errorf("got %+v, want a burst of 100, and none of a quota that is not smooth", q)
	}
	if ratelimit.PerDay(5) == ratelimit.PerDay(5).In(time.UTC) {
		t.Error("the day of PerDay is a window of its own")
	}
}

func TestQuotaTextRefused(t *testing.T) {
	const (
		form    = "must be limit/window, such as 60/minute"
		limit   = "the limit must be a whole number from 1 to 9007199254740991, such as 60 or 1_000_000"
		window  = "the window must be second, minute, hour, day, month, or a duration such as 30s or 168h"
		size    = "the limit must be from 1 to 9007199254740991, got "
		length  = "the window must be whole seconds from 1s to 8784h, got "
		burst   = "the burst must be a whole number from 1 to the limit, such as 60/minute smooth 10"
		fixed   = "smooth is for windows of fixed lengths only"
		from    = "a month must begin on a day from 1 to 31, such as month from 17"
		only    = "only a month can have a day to begin from, and only a day or a month a time zone"
		zone    = "the time zone %q must be a name such as Europe/Berlin or UTC"
		unknown = "the time zone %q is not known: unknown time zone %[1]s"
	)
	for want, texts := range map[string][]string{
		form:                            {"", "60", "60 per minute"},
		limit:                           {"/minute", "x/minute", "+5/minute", "-5/minute", "5_/minute", "5__0/minute", "_5/minute", "1.5/minute", "1e3/minute", "99999999999999999999999/minute"},
		size + "0":                      {"0/minute", "0/month"},
		size + "9007199254740992":       {"9007199254740992/minute"},
		window:                          {"60/", "60/Minute", "60/minutes", "60/60", "60/minute/1", "5/Month"},
		length + "0s":                   {"60/0s"},
		length + "500ms":                {"60/500ms"},
		length + "1.5s":                 {"60/1500ms"},
		length + "8785h":                {"60/8785h"},
		length + "-1m":                  {"60/-1m"},
		burst:                           {"60/minute smooth", "60/minute smooth ", "60/minute smooth10", "60/minute smooth -1", "60/minute smooth ten", "60/minute smooth 5 "},
		fixed:                           {"60/month smooth 5", "60/day in UTC smooth 5"},
		"smooth is not for soft quotas": {"60/minute smooth 5 soft"},
		"soft must be the last word, such as 10000/month from 17 soft": {"60/minute soft smooth 5", "5/month soft from 17", "5/month soft soft"},
		from:                                                  {"5/month from 0", "5/month from 32", "5/month from -1", "5/month from 017", "5/month from ", "5/month from", "5/month from x", "5/month from 17 ", "5/month from 5 from 6"},
		only:                                                  {"5/day from 17", "5/720h from 17", "5/hour in UTC", "5/24h in UTC", "5/day from 3 in UTC"},
		fmt.Sprintf(zone, ""):                                 {"5/month in ", "5/month in", "5/day in"},
		fmt.Sprintf(zone, "Local"):                            {"5/month in Local"},
		fmt.Sprintf(zone, "../etc"):                           {"5/month in ../etc"},
		fmt.Sprintf(zone, "Europe//Berlin"):                   {"5/month in Europe//Berlin"},
		fmt.Sprintf(zone, "/Europe/Berlin"):                   {"5/month in /Europe/Berlin"},
		fmt.Sprintf(zone, "a in b"):                           {"5/month in a in b"},
		fmt.Sprintf(zone, "UTC from 17"):                      {"5/month in UTC from 17"},
		fmt.Sprintf(unknown, "Middle/Earth"):                  {"5/month in Middle/Earth"},
		fmt.Sprintf(unknown, "Nowhere"):                       {"5/month from 17 in Nowhere"},
		"the window of 768h0m1s is reserved":                  {"5/768h1s"},
		"the window of 48h0m1s is reserved":                   {"5/172801s"},
		"the burst must be from 1 to the limit of 60, got 0":  {"60/minute smooth 0"},
		"the burst must be from 1 to the limit of 60, got 61": {"60/minute smooth 61"},
		"a smooth quota must be at most 1000000 units a second, got 1000001 in 1s": {"1000001/second smooth 9"},
	} {
		for _, text := range texts {
			_, err := parse(text)
			if want := `ratelimit: quota "` + text + `": ` + want; err == nil || err.Error() != want {
				t.Errorf("%q: got error %v, want %s", text, err, want)
			}
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
