package ratelimit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bounds of a [Quota].
const (
	MaxLimit  = 1<<32 - 1            // units in one window
	MaxWindow = 366 * 24 * time.Hour // length of one window
)

// A Quota allows Limit units in each Window. Windows are fixed and aligned to
// the UTC clock: a minute begins at second 0, a day at 00:00 UTC, and a window
// of any other length at a multiple of that length since 1 January 1970.
//
// Limit is from 1 to [MaxLimit]; Window is a whole number of seconds from one
// second to [MaxWindow]. The zero Quota is not valid.
type Quota struct {
	Limit  int64
	Window time.Duration
}

// PerSecond returns the quota of limit units a second.
func PerSecond(limit int64) Quota { return Quota{limit, time.Second} }

// PerMinute returns the quota of limit units a minute.
func PerMinute(limit int64) Quota { return Quota{limit, time.Minute} }

// PerHour returns the quota of limit units an hour.
func PerHour(limit int64) Quota { return Quota{limit, time.Hour} }

// PerDay returns the quota of limit units a day, from 00:00 to 24:00 UTC.
func PerDay(limit int64) Quota { return Quota{limit, day} }

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

// ParseQuota reads the text form of a quota: the limit, a slash and the window,
// which is a word (second, minute, hour, day) or a duration as
// [time.ParseDuration] reads it: "60/minute", "1000/day", "5/2s".
// Underscores may group the digits of the limit: "1_000_000/day".
func ParseQuota(text string) (Quota, error) {
	limit, window, ok := strings.Cut(text, "/")
	if !ok {
		return Quota{}, fmt.Errorf("ratelimit: quota %q: must be limit/window, such as 60/minute", text)
	}
	var q Quota
	var err error
	if q.Limit, err = parseLimit(limit); err != nil {
		return Quota{}, fmt.Errorf("ratelimit: quota %q: %w", text, err)
	}
	if q.Window, err = parseWindow(window); err != nil {
		return Quota{}, fmt.Errorf("ratelimit: quota %q: %w", text, err)
	}
	if err := q.validate(); err != nil {
		return Quota{}, fmt.Errorf("ratelimit: quota %q: %w", text, err)
	}
	return q, nil
}

var errLimitText = fmt.Errorf("the limit must be a whole number from 1 to %d, such as 60 or 1_000_000", int64(MaxLimit))

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

func parseWindow(text string) (time.Duration, error) {
	for _, n := range namedWindows {
		if text == n.word {
			return n.window, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("the window must be second, minute, hour, day, or a duration such as 30s or 168h")
	}
	return d, nil
}

// String returns the text form, which [ParseQuota] reads back.
func (q Quota) String() string {
	return strconv.FormatInt(q.Limit, 10) + "/" + q.windowName()
}

// windowName is the word for the window, or its duration in seconds.
func (q Quota) windowName() string {
	for _, n := range namedWindows {
		if q.Window == n.window {
			return n.word
		}
	}
	return strconv.FormatInt(int64(q.Window/time.Second), 10) + "s"
}

// MarshalText returns the text form. A quota that is not valid is an error.
func (q Quota) MarshalText() ([]byte, error) {
	if err := q.validate(); err != nil {
		return nil, fmt.Errorf("ratelimit: quota: %w", err)
	}
	return []byte(q.String()), nil
}

// UnmarshalText reads the text form, as [ParseQuota] does.
func (q *Quota) UnmarshalText(text []byte) error {
	parsed, err := ParseQuota(string(text))
	if err != nil {
		return err
	}
	*q = parsed
	return nil
}

func (q Quota) validate() error {
	switch {
	case q.Limit < 1 || q.Limit > MaxLimit:
		return fmt.Errorf("Quota.Limit must be from 1 to %d, got %d", int64(MaxLimit), q.Limit)
	case !isWholeSeconds(q.Window):
		return mustBe("Quota.Window", wholeSeconds, q.Window)
	}
	return nil
}

const wholeSeconds = "whole seconds from 1s to 8784h" // MaxWindow

// isWholeSeconds reports whether d can be a window or the length of a ban.
func isWholeSeconds(d time.Duration) bool {
	return d >= time.Second && d <= MaxWindow && d%time.Second == 0
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
