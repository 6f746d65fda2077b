package fixedwindow

import "time"

// Day and Month are the lengths by which the two kinds of calendar windows are known.
// They stand in for lengths that vary: each is longer than any window of its kind, also
// where a zone repeats a date, and no fixed window may have it.
const (
	Day   = 48*time.Hour + time.Second
	Month = 32*24*time.Hour + time.Second
)

// IsCalendar reports whether a length stands in for calendar windows.
func IsCalendar(length time.Duration) bool { return length == Day || length == Month }

// Apart returns how many seconds at least lie between the ends of two calendar windows of a
// kind that follow each other. The ends of two that are open at once, by different
// calendars, are mostly less apart.
func Apart(length time.Duration) int64 {
	if length == Day {
		return 20 * 60 * 60
	}
	return 28 * 24 * 60 * 60
}

// A Calendar says where calendar windows begin: at the first instant of each day in a
// zone or, if From is positive, of that day of each month, or of its last day if it has
// fewer. Where one window begins, the one before ends.
//
// The first instant of a day is midnight, or a change of the clock that skips midnight.
// If a change repeats midnight, the first one counts. A date that the zone skips has no
// window.
type Calendar struct {
	From int // 1 to 31; 0: every day
	In   *time.Location
}

// After returns the first second after another at which a window begins. Both are Unix
// seconds.
func (c Calendar) After(second int64) int64 {
	y, m, d := time.Unix(second, 0).In(c.In).Date()
	for k := 0; ; k++ {
		if begin := c.begin(y, m, d, k); begin > second {
			return begin
		}
	}
}

// Before returns the last second before another at which a window begins. Both are Unix
// seconds.
func (c Calendar) Before(second int64) int64 {
	y, m, d := time.Unix(second, 0).In(c.In).Date()
	for k := 1; ; k-- { // the date after that one may have begun, if the clock went back
		if begin := c.begin(y, m, d, k); begin < second {
			return begin
		}
	}
}

// begin returns when the k-th window after the one that belongs to a date begins.
func (c Calendar) begin(y int, m time.Month, d, k int) int64 {
	if c.From == 0 {
		return firstInstant(time.Date(y, m, d+k, 0, 0, 0, 0, time.UTC), c.In)
	}
	last := time.Date(y, m+time.Month(k+1), 0, 0, 0, 0, 0, time.UTC)
	return firstInstant(last.AddDate(0, 0, min(c.From-last.Day(), 0)), c.In)
}

// firstInstant returns the first instant, in Unix seconds, at which the date in a zone is
// the given one or later. The date is its midnight in UTC. time.Date does not say which
// of two instants it returns, where a change of the clock skips or repeats midnight.
func firstInstant(date time.Time, zone *time.Location) int64 {
	// Each round looks at a time in which the zone has one offset.
	for t := date.Add(-36 * time.Hour).In(zone); ; {
		_, offset := t.Zone()
		_, end := t.ZoneBounds()
		// In the far future ZoneBounds takes the end of the year for that of an offset,
		// and on 31 December of a leap year for one that is past.
		if !end.IsZero() && !end.After(t) {
			end = t.Add(time.Hour)
		}
		first := max(date.Unix()-int64(offset), t.Unix())
		if end.IsZero() || first < end.Unix() {
			return first
		}
		t = end
	}
}
