// Package fixedwindow is the arithmetic of fixed windows. A window of a length ends at each
// multiple of that length since 1 January 1970 UTC. A calendar window, a month or a day
// in a time zone, ends where its [Calendar] says.
//
//	end := fixedwindow.End(now.UnixNano(), time.Minute)
//
// Times that are compared with clocks are Unix nanoseconds; ends of windows are Unix
// seconds. Lengths are whole seconds. No time is before 1970. The functions are pure.
package fixedwindow

import (
	"strconv"
	"time"
)

// The bounds of a window.
const (
	MaxUnits  = 1<<53 - 1            // that it holds; numbers of Lua and JavaScript are exact so far
	MaxLength = 366 * 24 * time.Hour // from one second
)

// A Kind tells the windows of a subject apart: usage belongs to a subject and a kind. The kind
// of fixed windows is their length, of calendar windows [Day] or [Month], and of a smooth quota
// its window with a minus sign. In the order of kinds, smooth quotas come first.
type Kind time.Duration

// KindOf returns the kind of which Seconds returns so many.
func KindOf(seconds int64) Kind { return Kind(seconds) * Kind(time.Second) }

// Seconds returns k as a number of seconds: less than 0 if it is of a smooth quota.
func (k Kind) Seconds() int64 { return int64(k) / int64(time.Second) }

// IsSmooth reports whether k is of a smooth quota, which has a bucket in place of windows.
func (k Kind) IsSmooth() bool { return k < 0 }

// IsCalendar reports whether k is of calendar windows.
func (k Kind) IsCalendar() bool { return IsCalendar(time.Duration(k)) }

// Length returns how long the windows are: of calendar windows at most, and of a smooth quota
// the time in which its whole limit comes back.
func (k Kind) Length() time.Duration { return time.Duration(max(k, -k)) }

// A Window is one window of a subject.
type Window struct {
	Length uint32 // in seconds; 0: there is none
	End    uint32 // Unix seconds
}

// End returns when the window ends that a time lies in. The length is not [Day] or [Month].
func End(nanos int64, length time.Duration) int64 {
	return (nanos/int64(length) + 1) * int64(length/time.Second)
}

// LatestEnd returns the latest end that an open window may have by a clock: the end of the window
// after the one that its time lies in, and of a calendar window two lengths from then. A
// window lies in the future if another clock is ahead, or if this one stepped back.
func LatestEnd(nanos int64, length time.Duration) int64 {
	if IsCalendar(length) {
		return Seconds(nanos) + 2*int64(length/time.Second)
	}
	return End(nanos, length) + int64(length/time.Second)
}

// Seconds returns nanoseconds in seconds, rounded down.
func Seconds(nanos int64) int64 { return nanos / int64(time.Second) }

// SecondsUp returns nanoseconds in seconds, rounded up.
func SecondsUp(nanos int64) int64 { return (nanos + int64(time.Second) - 1) / int64(time.Second) }

// Units returns a length in the largest unit that divides it: 15 and "minute", 1 and
// "month".
func Units(length time.Duration) (n int64, unit string) {
	switch length {
	case Month:
		return 1, "month"
	case Day:
		return 1, "day"
	}
	n, unit = int64(length/time.Second), "second"
	for _, larger := range []struct {
		seconds int64
		unit    string
	}{{60, "minute"}, {3600, "hour"}, {86400, "day"}} {
		if seconds := int64(length / time.Second); seconds%larger.seconds == 0 {
			n, unit = seconds/larger.seconds, larger.unit
		}
	}
	return n, unit
}

// Name returns the word for a length, or the length in seconds: "minute", "900s".
func Name(length time.Duration) string {
	if n, unit := Units(length); n == 1 {
		return unit
	}
	return strconv.FormatInt(int64(length/time.Second), 10) + "s"
}

// Name returns the name of a kind in header fields and metrics, where a plan may have both kinds
// of days, and fixed windows and a smooth quota of one length.
func (k Kind) Name() string {
	switch {
	case k.IsSmooth():
		return "smooth-" + Name(k.Length())
	case k == Kind(Day):
		return "local-day"
	}
	return Name(k.Length())
}
