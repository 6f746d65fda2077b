package fixedwindow_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/testcheck"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc := testcheck.Must(time.LoadLocation(name))
	return loc
}

func instant(t *testing.T, text string) int64 {
	t.Helper()
	at := testcheck.Must(time.Parse(time.RFC3339, text))
	return at.Unix()
}

// Each row is instants at which windows begin that follow each other.
func TestCalendar(t *testing.T) {
	for _, test := range []struct {
		name, zone string
		from       int
		begins     []string
	}{
		{"months", "UTC", 1, []string{
			"2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z", "2027-03-01T00:00:00Z"}},
		{"a leap year", "UTC", 1, []string{"2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"}},
		{"from 17", "UTC", 17, []string{"2026-12-17T00:00:00Z", "2027-01-17T00:00:00Z"}},
		{"from 29", "UTC", 29, []string{
			"2027-01-29T00:00:00Z", "2027-02-28T00:00:00Z", "2027-03-29T00:00:00Z"}},
		{"from 29 in a leap year", "UTC", 29, []string{
			"2028-01-29T00:00:00Z", "2028-02-29T00:00:00Z", "2028-03-29T00:00:00Z"}},
		{"from 29 in 2000, which was a leap year, and 2100, which is none", "UTC", 29, []string{
			"2100-01-29T00:00:00Z", "2100-02-28T00:00:00Z", "2100-03-29T00:00:00Z"}},
		{"from 30", "UTC", 30, []string{
			"2027-01-30T00:00:00Z", "2027-02-28T00:00:00Z", "2027-03-30T00:00:00Z", "2027-04-30T00:00:00Z"}},
		{"from 31", "UTC", 31, []string{
			"2026-12-31T00:00:00Z", "2027-01-31T00:00:00Z", "2027-02-28T00:00:00Z", "2027-03-31T00:00:00Z",
			"2027-04-30T00:00:00Z", "2027-05-31T00:00:00Z"}},
		{"months in a zone", "Europe/Berlin", 1, []string{
			"2026-10-01T00:00:00+02:00", "2026-11-01T00:00:00+01:00", "2026-12-01T00:00:00+01:00"}},
		{"from 17 in a zone", "America/New_York", 17, []string{
			"2026-10-17T00:00:00-04:00", "2026-11-17T00:00:00-05:00"}},
		{"a day of 23 hours", "Europe/Berlin", 0, []string{
			"2026-03-28T00:00:00+01:00", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00", "2026-03-31T00:00:00+02:00"}},
		{"a day of 25 hours", "Europe/Berlin", 0, []string{
			"2026-10-24T00:00:00+02:00", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00", "2026-10-27T00:00:00+01:00"}},
		{"a change of half an hour", "Australia/Lord_Howe", 0, []string{
			"2026-04-04T00:00:00+11:00", "2026-04-05T00:00:00+11:00", "2026-04-06T00:00:00+10:30"}},
		{"half hours", "Asia/Kolkata", 0, []string{"2026-01-01T00:00:00+05:30", "2026-01-02T00:00:00+05:30"}},
		{"quarters of an hour", "Asia/Kathmandu", 1, []string{"2026-01-01T00:00:00+05:45", "2026-02-01T00:00:00+05:45"}},
		{"midnight is skipped", "America/Sao_Paulo", 0, []string{
			"2018-11-03T00:00:00-03:00", "2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"}},
		{"a month whose midnight is skipped", "Asia/Beirut", 29, []string{
			"2021-03-29T00:00:00+03:00", "2021-04-29T00:00:00+03:00"}},
		{"from the day whose midnight is skipped", "Asia/Beirut", 28, []string{
			"2021-02-28T00:00:00+02:00", "2021-03-28T01:00:00+03:00", "2021-04-28T00:00:00+03:00"}},
		{"midnight comes twice", "America/Havana", 0, []string{
			"2026-10-31T00:00:00-04:00", "2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"}},
		{"a month begins twice", "America/St_Johns", 1, []string{ // at 00:01 on 1 November 2009 back to 23:01
			"2009-10-01T00:00:00-02:30", "2009-11-01T00:00:00-02:30", "2009-12-01T00:00:00-03:30"}},
		{"a date that is skipped", "Pacific/Apia", 0, []string{
			"2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"}},
		{"from the date that is skipped", "Pacific/Apia", 30, []string{
			"2011-11-30T00:00:00-10:00", "2011-12-31T00:00:00+14:00", "2012-01-30T00:00:00+14:00"}},
		{"the end of a leap year far ahead", "America/New_York", 0, []string{
			"2040-12-30T00:00:00-05:00", "2040-12-31T00:00:00-05:00", "2041-01-01T00:00:00-05:00", "2041-01-02T00:00:00-05:00"}},
		{"from the last day of a leap year far ahead", "Pacific/Honolulu", 31, []string{
			"2048-11-30T00:00:00-10:00", "2048-12-31T00:00:00-10:00", "2049-01-31T00:00:00-10:00"}},
		{"from the last day of a leap year, with summer time", "Pacific/Easter", 31, []string{
			"2088-11-30T00:00:00-05:00", "2088-12-31T00:00:00-05:00", "2089-01-31T00:00:00-05:00"}},
		{"a zone with another year", "Pacific/Kiritimati", 1, []string{
			"2026-12-31T10:00:00Z", "2027-01-31T10:00:00Z"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := fixedwindow.Calendar{From: test.from, In: zone(t, test.zone)}
			for i, begin := range test.begins[:len(test.begins)-1] {
				begin, end := instant(t, begin), instant(t, test.begins[i+1])
				for _, at := range []int64{begin, begin + 1, (begin + end) / 2, end - 3600, end - 1} {
					if got := c.After(at); got != end {
						t.Errorf("After(%v) = %v, want %v", utc(at), utc(got), utc(end))
					}
				}
				for _, at := range []int64{end, end - 1, end - 3600, (begin + end) / 2, begin + 1} {
					if got := c.Before(at); got != begin {
						t.Errorf("Before(%v) = %v, want %v", utc(at), utc(got), utc(begin))
					}
				}
			}
		})
	}
}

func utc(t int64) time.Time { return time.Unix(t, 0).UTC() }

// zonesWithRareRules have had changes at midnight, of half an hour, of a day, or far from
// the usual ones.
var zonesWithRareRules = []string{
	"UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "America/Sao_Paulo", "America/Havana",
	"Asia/Beirut", "Asia/Amman", "Asia/Tehran", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Gaza", "Africa/Cairo",
	"Africa/Casablanca", "Africa/Monrovia", "Australia/Lord_Howe", "Antarctica/Troll", "Pacific/Apia", "Pacific/Kwajalein",
	"Pacific/Chatham", "Pacific/Kiritimati", "America/Scoresbysund", "Atlantic/Azores", "Asia/Manila",
}

// TestCalendarAgainstWalk compares the calendar with a walk that asks for the date every
// quarter of an hour, and then every second.
func TestCalendarAgainstWalk(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range zonesWithRareRules {
		loc := zone(t, name)
		for range 60 {
			c := fixedwindow.Calendar{From: r.IntN(32), In: loc}
			at := time.Date(1970+r.IntN(130), 1, 3, 0, 0, r.IntN(366*86400), 0, time.UTC).Unix()
			want := walk(c, at)
			if got := c.After(at); got != want {
				t.Fatalf("%+v in %s: After(%v) = %v, want %v", c, name, utc(at), utc(got), utc(want))
			}
			if got := c.After(want - 1); got != want {
				t.Fatalf("%+v in %s: After(%v) = %v, want %v", c, name, utc(want-1), utc(got), utc(want))
			}
			start := c.Before(want)
			if start > at || c.After(start) != want {
				t.Fatalf("%+v in %s: the window from %v, with %v in it, ends at %v, want %v",
					c, name, utc(start), utc(at), utc(c.After(start)), utc(want))
			}
			longest := fixedwindow.Month
			if c.From == 0 {
				longest = fixedwindow.Day
			}
			if length := time.Duration(want-start) * time.Second; length >= longest {
				t.Fatalf("%+v in %s: the window from %v is %v long, and the stand-in only %v", c, name, utc(start), length, longest)
			}
		}
	}
}

// walk returns the first second after t at which the greatest date so far is the first
// one of another window.
func walk(c fixedwindow.Calendar, t int64) int64 {
	latest := ""
	for at := t - 3*86400; at <= t; at += 900 {
		latest = max(latest, window(c, at))
	}
	latest = max(latest, window(c, t))
	for at := t; ; at += 900 {
		if window(c, at) > latest {
			for at -= 899; window(c, at) <= latest; at++ {
			}
			return at
		}
	}
}

// window returns the date on which the window of the date at t begins.
func window(c fixedwindow.Calendar, t int64) string {
	y, m, d := time.Unix(t, 0).In(c.In).Date()
	if c.From == 0 {
		return fmt.Sprintf("%04d-%02d-%02d", y, m, d)
	}
	if d < firstDay(y, m, c.From) {
		if m--; m == 0 {
			y, m = y-1, 12
		}
	}
	return fmt.Sprintf("%04d-%02d", y, m)
}

func firstDay(y int, m time.Month, from int) int {
	days := []int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[m-1]
	if m == time.February && y%4 == 0 && (y%100 != 0 || y%400 == 0) {
		days = 29
	}
	return min(from, days)
}

func TestLatestEnd(t *testing.T) {
	now := instant(t, "2026-11-22T13:00:00Z")
	for length, want := range map[time.Duration]string{
		time.Hour:         "2026-11-22T15:00:00Z",
		fixedwindow.Day:   "2026-11-26T13:00:02Z",
		fixedwindow.Month: "2027-01-25T13:00:02Z",
	} {
		if got := fixedwindow.LatestEnd(now*int64(time.Second)+999, length); got != instant(t, want) {
			t.Errorf("LatestEnd of %v = %v, want %s", length, utc(got), want)
		}
	}
}
