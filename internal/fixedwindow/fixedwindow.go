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

// A Window is one window of a subject.
type Window struct {
	Length uint32 // in seconds; 0: there is none
	End    uint32 // Unix seconds
}

// End returns when the window that now lies in ends. The length is not [Day] or [Month].
func End(now int64, length time.Duration) int64 {
	return (now/int64(length) + 1) * int64(length/time.Second)
}

// LatestEnd returns the latest end that an open window may have: that of the window
// after the one that now lies in, and of a calendar window two lengths from now. A
// window lies in the future if another clock is ahead, or if this one stepped back.
func LatestEnd(now int64, length time.Duration) int64 {
	if IsCalendar(length) {
		return Seconds(now) + 2*int64(length/time.Second)
	}
	return End(now, length) + int64(length/time.Second)
}

// Seconds returns t in seconds, rounded down.
func Seconds(t int64) int64 { return t / int64(time.Second) }

// SecondsUp returns t in seconds, rounded up.
func SecondsUp(t int64) int64 { return (t + int64(time.Second) - 1) / int64(time.Second) }

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

// KindName returns the name of a kind of windows in header fields and metrics, where a plan
// may have both kinds of days, and fixed windows and a smooth quota of one length.
func KindName(kind time.Duration) string {
	switch {
	case kind < 0:
		return "smooth-" + Name(-kind)
	case kind == Day:
		return "local-day"
	}
	return Name(kind)
}
