package enginetest

import (
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// endOf returns the end of the window of the i-th quota that t is in.
func endOf(t time.Time, plan *ratelimit.Plan, i int) time.Time {
	q := engine.Of(plan).Quota(i)
	if q.Calendar() {
		return time.Unix(engine.Of(plan).WindowEnd(i, nanoseconds(t)), 0)
	}
	return fixedEnd(t, q.Window)
}

// fixedEnd returns the end of the window of the given length that t is in. Windows are
// counted from 1 January 1970.
func fixedEnd(t time.Time, length time.Duration) time.Time {
	seconds := int64(length / time.Second)
	windows := t.Unix() / seconds // that have ended
	return time.Unix((windows+1)*seconds, 0)
}

// startOf returns the start of the window of the i-th quota that ends at a time.
func startOf(end time.Time, plan *ratelimit.Plan, i int) time.Time {
	return time.Unix(engine.Of(plan).WindowStart(i, end.Unix()), 0)
}

// latestEnd returns the latest end that a window of the given length may have: that of the
// one after the window that now is in. Calendar windows may end two lengths from now.
func latestEnd(now time.Time, length time.Duration) time.Time {
	if fixedwindow.IsCalendar(length) {
		return time.Unix(now.Unix(), 0).Add(2 * length)
	}
	return fixedEnd(now, length).Add(length)
}

// nanoseconds returns t in Unix nanoseconds, and for a time that does not fit the nearest
// one from 1970 to 2106.
func nanoseconds(t time.Time) int64 {
	return min(max(t.Unix(), 0), 1<<32-1)*int64(time.Second) + int64(t.Nanosecond())
}

func roundUp(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second) }

func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
