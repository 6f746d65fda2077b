package deprecation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
)

func TestFormatDeprecation(t *testing.T) {
	tokyo := time.FixedZone("JST", 9*60*60)
	for _, tt := range []struct {
		t    time.Time
		want string
	}{
		{since, deprecationValue},
		{since.In(tokyo), deprecationValue},
		{since.Add(999 * time.Millisecond), deprecationValue},
		{time.Unix(0, 0), "@0"},
		{time.Unix(-1, 0), "@-1"},
		{time.Unix(999_999_999_999_999, 0), "@999999999999999"},
	} {
		if got := deprecation.FormatDeprecation(tt.t); got != tt.want {
			t.Errorf("FormatDeprecation(%v) = %q, want %q", tt.t, got, tt.want)
		}
	}
}

func TestParseDeprecation(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  int64
	}{
		{"@1764892800", 1764892800},
		{"@0", 0},
		{"@-0", 0},
		{"@-62135596800", -62135596800},
		{"@007", 7},
		{"@999999999999999", 999999999999999},
		{"@-999999999999999", -999999999999999},
		{"  @1764892800 ", 1764892800},
		{`@1764892800;a;b=1;c=-1.5;d="x \" y";e=tok/en;f=:YWI=:;g=?0;h=@5; *i_.-*=%"f%c3%bc"`, 1764892800},
	} {
		got, err := deprecation.ParseDeprecation(tt.value)
		if err != nil || got.Unix() != tt.want || got.Location() != time.UTC {
			t.Errorf("ParseDeprecation(%q) = %v, %v, want %v in UTC", tt.value, got, err, time.Unix(tt.want, 0).UTC())
		}
	}
	for _, value := range []string{
		"", "@", "@-", "1764892800", "@1764892800.0", "@1e9", "@+1", "@--1", "@ 1", "@1 2", "@1_000", "@0x10", "@١",
		"@1000000000000000", "@-1000000000000000", "@9223372036854775808", "\t@1", "@1\n",
		"true", "?1", `"@1"`, "@1, @2", "@1, ", "(@1)", "Fri, 05 Dec 2025 00:00:00 GMT",
		"@1;", "@1 ;a", "@1;A=1", "@1;a=", "@1;a=(1)", "@1;a b", `@1;a="x`, "@1;a=1234567890123456", "@1;a=?2",
		"@1" + strings.Repeat(";a", 200),
	} {
		if got, err := deprecation.ParseDeprecation(value); err == nil {
			t.Errorf("ParseDeprecation(%q) = %v, want an error", value, got)
		}
	}
}

// time.RFC1123 would print UTC, and a time in another zone its own hours.
func TestFormatSunset(t *testing.T) {
	for _, tt := range []struct {
		t    time.Time
		want string
	}{
		{sunset, sunsetValue},
		{sunset.In(time.FixedZone("JST", 9*60*60)), sunsetValue},
		{sunset.Add(-time.Nanosecond), "Wed, 04 Dec 2030 23:59:59 GMT"},
		{time.Unix(1922659200, 0), sunsetValue},
		{time.Unix(1922745599, 0), "Thu, 05 Dec 2030 23:59:59 GMT"},
	} {
		if got := deprecation.FormatSunset(tt.t); got != tt.want {
			t.Errorf("FormatSunset(%v) = %q, want %q", tt.t, got, tt.want)
		}
	}
}

// RFC 9110 section 5.6.7 has three forms, of which two are obsolete.
func TestParseSunset(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  time.Time
	}{
		{"Thu, 05 Dec 2030 00:00:00 GMT", sunset},
		{"Thursday, 05-Dec-30 00:00:00 GMT", sunset},
		{"Thu Dec  5 00:00:00 2030", sunset},
		{"Sun Nov 16 08:49:37 2031", time.Date(2031, time.November, 16, 8, 49, 37, 0, time.UTC)},
		{" Thu, 05 Dec 2030 00:00:00 GMT\t", sunset},
		{"Sat, 31 Dec 2018 23:59:59 GMT", time.Date(2018, time.December, 31, 23, 59, 59, 0, time.UTC)}, // was a Monday
		{"Sat, 31 Dec 2016 23:59:60 GMT", time.Date(2017, time.January, 1, 0, 0, 0, 0, time.UTC)},
		{"Sat, 01 Jan 0000 00:00:00 GMT", time.Date(0, time.January, 1, 0, 0, 0, 0, time.UTC)},
		{"Thu, 29 Feb 2024 00:00:00 GMT", time.Date(2024, time.February, 29, 0, 0, 0, 0, time.UTC)},
	} {
		got, err := deprecation.ParseSunset(tt.value)
		if err != nil || !got.Equal(tt.want) || got.Location() != time.UTC {
			t.Errorf("ParseSunset(%q) = %v, %v, want %v", tt.value, got, err, tt.want)
		}
	}
	for _, value := range []string{
		"", "@1922659200", "2030-12-05", "2030-12-05T00:00:00Z", "1922659200",
		"Thu, 05 Dec 2030 00:00:00 UTC", "Thu, 05 Dec 2030 00:00:00 +0000", "Thu, 05 Dec 2030 00:00:00 JST", "Thu, 05 Dec 2030 00:00:00",
		"Thursday, 05-Dec-30 00:00:00 JST", "Thursday, 05-Dec-2030 00:00:00 GMT", "Thu, 05-Dec-30 00:00:00 GMT",
		"Thu, 5 Dec 2030 00:00:00 GMT", "Thu, 05 Dec 2030 0:00:00 GMT", "Thu, 05 Dec 2030 00:00:00.5 GMT", "Thu, 05 dec 2030 00:00:00 GMT",
		"Thu, 05 Dec 2030 00:00:00 gmt", "Thu, 05 Dec 30 00:00:00 GMT", "Thu, 05 Dec 12030 00:00:00 GMT", "05 Dec 2030 00:00:00 GMT",
		"Thu, 31 Feb 2030 00:00:00 GMT", "Thu, 29 Feb 2030 00:00:00 GMT", "Thu, 05 Dec 2030 24:00:00 GMT", "Thu, 05 Dec 2030 00:60:00 GMT",
		"Thu, 05 Dec 2030 00:00:60 GMT", "Thu Dec 5 00:00:00 2030", "Thu Dec 05 00:00:00 2030", "Thu,  05 Dec 2030 00:00:00 GMT",
		"Thu, 05 Dec 2030 00:00:00 GMT, Thu, 05 Dec 2030 00:00:00 GMT", strings.Repeat(" ", 300) + sunsetValue,
	} {
		if got, err := deprecation.ParseSunset(value); err == nil {
			t.Errorf("ParseSunset(%q) = %v, want an error", value, got)
		}
	}
}
