// Package fixedwindow is the arithmetic of fixed windows. A window of a length ends at each
// multiple of that length since 1 January 1970 UTC. A calendar window, a month or a day
// in a time zone, ends where its [Calendar] says.
//
//	end := fixedwindow.End(now.UnixNano(), time.Minute)
//
// Times that are compared with clocks are Unix nanoseconds; ends of windows are Unix
// seconds. Lengths are whole seconds. No time is before 1970. The functions are pure.
package fixedwindow

import "time"

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
