package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
)

// A Quota allows Limit units in each Window. Windows are fixed: they do not move with the
// requests. A minute begins at second 0, a day at 00:00 UTC, and a window of any other
// length at a multiple of that length since 1 January 1970 UTC. Calendar windows differ in
// length: the month of [PerMonth], also from a day of billing ([Quota.From]), and the day
// in a time zone ([Quota.In]). A smooth quota has no windows: its units come back one by
// one ([Quota.Smooth]).
//
// Limit is from 1 to 9007199254740991, which is 2⁵³ − 1, the largest number that JSON carries
// exactly. Window is a whole number of seconds from one second to 8784 hours, which are 366
// days. Quotas can be compared with ==. The zero Quota is not valid.
type Quota struct {
	Limit int64

	// Window is the length. Of a month, and of a day in a zone, it is a stand-in, the same
	// for all months, and another one for all days in zones. Stand-ins are longer than
	// any of their windows; no other quota may have them as its Window.
	Window time.Duration

	calendar calendar
	burst    int64 // of a smooth quota, from 1; negative: one that is out of range, less 1
	soft     bool
}

// PerSecond returns the quota of limit units a second.
func PerSecond(limit int64) Quota { return Quota{Limit: limit, Window: time.Second} }

// PerMinute returns the quota of limit units a minute.
func PerMinute(limit int64) Quota { return Quota{Limit: limit, Window: time.Minute} }

// PerHour returns the quota of limit units an hour.
func PerHour(limit int64) Quota { return Quota{Limit: limit, Window: time.Hour} }

// PerDay returns the quota of limit units a day, from 00:00 to 24:00 UTC, or in the zone
// that [Quota.In] gives it.
func PerDay(limit int64) Quota { return Quota{Limit: limit, Window: day} }

const day = 24 * time.Hour

// namedWindows are the windows that have a name in the text form.
var namedWindows = [...]struct {
	word   string
	window time.Duration
}{
	{"second", time.Second},
	{"minute", time.Minute},
	{"hour", time.Hour},
	{"day", day},
}

// inText replaces the names that a quota's parts have in Go by those that they have in text.
var inText = strings.NewReplacer("the burst of Quota.Smooth", "the burst", "Quota.Smooth is", "smooth is",
	"Quota.Smooth", "a smooth quota", "Quota.Limit", "the limit", "Quota.Window", "the window",
	": make calendar windows with PerMonth or PerDay and In, and change only their Limit", "")

var errLimitText = fmt.Errorf("the limit must be a whole number from 1 to %d, such as 60 or 1_000_000", int64(fixedwindow.MaxUnits))

func parseLimit(text string) (int64, error) {
	if text == "" || text[0] < '0' || text[0] > '9' || strings.HasSuffix(text, "_") || strings.Contains(text, "__") {
		return 0, errLimitText
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	if err != nil {
		return 0, errLimitText
	}
	return n, nil
}

// parseWindow sets all but the limit.
func (q *Quota) parseWindow(text string) error {
	if calendar, err := parseCalendar(text); err != nil || calendar.Window > 0 {
		q.Window, q.calendar = calendar.Window, calendar.calendar
		return err
	}
	for _, n := range namedWindows {
		if text == n.word {
			q.Window = n.window
			return nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("the window must be second, minute, hour, day, month, or a duration such as 30s or 168h")
	}
	q.Window = d
	return nil
}

// String returns the text form, which [Quota.UnmarshalText] reads back.
func (q Quota) String() string {
	return strconv.FormatInt(q.Limit, 10) + "/" + fixedwindow.Name(q.Window) + q.calendar.suffix() + q.smoothSuffix() + q.softSuffix()
}

// MarshalText returns the text form. A quota that is not valid, or is in a location
// whose name does not lead back to it, is an error.
func (q Quota) MarshalText() ([]byte, error) {
	if err := cmp.Or(q.validate(), q.calendar.hasText()); err != nil {
		return nil, fmt.Errorf("ratelimit: quota: %w", err)
	}
	return []byte(q.String()), nil
}

// UnmarshalText reads the text form of a quota: the limit, a slash and the window. The window
// is a word (second, minute, hour, day, month) or a duration as [time.ParseDuration] reads it:
// "60/minute", "1000/day", "5/2s". Underscores may group the digits of the limit:
// "1_000_000/day". A month can begin on another day, and a month or a day in a time zone:
// "10000/month from 17", "1000/day in Europe/Berlin", "10000/month from 17 in Europe/Berlin". A
// program that must run where the system has no time zones imports [time/tzdata]. A quota can
// be smooth, with a burst, or soft: "60/minute smooth 10", "10000/month from 17 soft".
func (q *Quota) UnmarshalText(text []byte) error {
	parsed, err := parseQuota(string(text))
	if err != nil {
		return fmt.Errorf("ratelimit: quota %q: %w", text, err)
	}
	*q = parsed
	return nil
}

func parseQuota(text string) (q Quota, err error) {
	limit, window, ok := strings.Cut(text, "/")
	if !ok {
		return q, errors.New("must be limit/window, such as 60/minute")
	}
	if q.Limit, err = parseLimit(limit); err != nil {
		return q, err
	}
	if window, q.soft = strings.CutSuffix(window, softWord); strings.Contains(window, softWord) {
		return q, errors.New("soft must be the last word, such as 10000/month from 17 soft")
	}
	window, burst, smooth := strings.Cut(window, smoothWord)
	if err := q.parseWindow(window); err != nil {
		return q, err
	}
	if smooth {
		burst, spaced := strings.CutPrefix(burst, " ")
		n, err := parseLimit(burst)
		if err != nil || !spaced {
			return q, errBurstText
		}
		q = q.Smooth(n)
	}
	if err := q.validate(); err != nil {
		return q, errors.New(inText.Replace(err.Error()))
	}
	return q, nil
}

func (q Quota) validate() error {
	switch {
	case q.Limit < 1 || q.Limit > fixedwindow.MaxUnits:
		return fmt.Errorf("Quota.Limit must be from 1 to %d, got %d", int64(fixedwindow.MaxUnits), q.Limit)
	case q.calendar != calendar{} || fixedwindow.IsCalendar(q.Window):
		return cmp.Or(q.validateCalendar(), q.validateSmooth())
	case !isWholeSeconds(q.Window):
		return mustBe("Quota.Window", wholeSeconds, q.Window)
	}
	return q.validateSmooth()
}

const wholeSeconds = "whole seconds from 1s to 8784h" // fixedwindow.MaxLength

// isWholeSeconds reports whether d can be a window or the length of a ban.
func isWholeSeconds(d time.Duration) bool {
	return d >= time.Second && d <= fixedwindow.MaxLength && d%time.Second == 0
}

// mustBe is the error of a duration that is out of range.
func mustBe(field, what string, got time.Duration) error {
	return fmt.Errorf("%s must be %s, got %s", field, what, durationText(got))
}

// durationText is d without units that are zero: "8784h" and not "8784h0m0s".
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// windowText is the window in an error.
func (q Quota) windowText() string {
	switch {
	case q.Window == fixedwindow.Day:
		return "day in a zone"
	case q.calendar.is:
		return "month"
	}
	return durationText(q.Window)
}

// Smooth returns the quota without windows. Of Limit units in each Window, at most burst can be
// used at once, from 1 to Limit, and the others only as they come back, at even intervals. It
// is a token bucket that holds burst units, or the generic cell rate algorithm (GCRA):
//
//	PerMinute(60).Smooth(10) // one unit a second, and ten at once after ten seconds without any
//
// So no burst at a boundary of two windows can pass, and clients that all wait for a limit
// do not all come back at one instant. A decision shows the burst as the limit, what is
// in the bucket as remaining, and the time at which it is full as the reset; RetryAfter
// is exact to the microsecond. Within the length of one Window at most Limit plus burst
// units can be used. To bound a longer time too, combine a smooth quota with fixed windows
// in a plan.
//
// Usage belongs to the subject and the Window, also if the rate or the burst changes. It
// counts requests under plans with a smooth quota of that Window only. A subject can
// owe at most Limit units, if more than the burst is added, or if the clock
// steps back. Every admission clears all strikes, so that only a client that sends several
// requests for each one admitted is banned; see [Penalty].
//
// The rate is at most a million units a second. Smooth is for windows of fixed lengths.
// [NewPlan] refuses other quotas with it, and other bursts.
func (q Quota) Smooth(burst int64) Quota {
	if q.burst = burst; burst < 1 {
		q.burst = max(burst, -math.MaxInt64) - 1 // negative, so that 0 is refused too
	}
	return q
}

// Burst returns the largest number of units of a smooth quota that can be used at once,
// and 0 if the quota is not smooth.
func (q Quota) Burst() int64 { return max(q.burst, 0) }

// kind tells windows apart: the Window, of a smooth quota with a minus sign.
func (q *Quota) kind() time.Duration {
	if q.burst > 0 {
		return -q.Window
	}
	return q.Window
}

func (q *Quota) validateSmooth() error {
	switch {
	case q.burst == 0:
		return nil
	case q.soft:
		return errors.New("Quota.Smooth is not for soft quotas")
	case q.calendar.is:
		return errors.New("Quota.Smooth is for windows of fixed lengths only")
	case q.burst < 0 || q.burst > q.Limit:
		return fmt.Errorf("the burst of Quota.Smooth must be from 1 to the limit of %d, got %d", q.Limit, q.given())
	case q.Limit > gcra.MaxRate*int64(q.Window/time.Second):
		return fmt.Errorf("Quota.Smooth must be at most %d units a second, got %d in %s", gcra.MaxRate, q.Limit, durationText(q.Window))
	}
	return nil
}

// Soft returns the quota as one that counts beyond its limit and refuses nothing, to warn
// or to bill what is over:
//
//	PerMonth(10_000).Soft() // after 10,250 requests, Decision.Used is 10250
//
// If requests have several charges, or are settled later, look up what is used with Peek of
// package engine: the decision that a service gets may be about another charge, and is made with
// the estimate. Peek counts the estimates of all requests that are not settled yet, and does not
// know windows that have ended: bill the sum of all costs.
//
// Header fields leave a soft quota out if the plan has a hard one, which is not soft. If all are
// soft, they show the most used one, with 0 left once it is used up. A client that then waits until
// the Reset, as package transport does, waits for nothing. So give the plan a hard quota too, such
// as one of a minute.
//
// Usage belongs to the subject and the Window, also if a quota becomes soft or hard. No window
// counts more than 9007199254740991 units: a request beyond that is refused. A smooth quota cannot
// be soft: [NewPlan] refuses it.
func (q Quota) Soft() Quota {
	q.soft = true
	return q
}

const softWord = " soft" // ends the text form

func (q *Quota) softSuffix() string {
	if q.soft {
		return softWord
	}
	return ""
}

// smoothWord comes before the burst in the text form.
const smoothWord = " smooth"

var errBurstText = errors.New("the burst must be a whole number from 1 to the limit, such as 60/minute smooth 10")

func (q *Quota) smoothSuffix() string {
	if q.burst == 0 {
		return ""
	}
	return smoothWord + " " + strconv.FormatInt(q.given(), 10)
}

// given is the burst that Smooth got, also one that is out of range.
func (q *Quota) given() int64 {
	if q.burst < 0 {
		return q.burst + 1
	}
	return q.burst
}
