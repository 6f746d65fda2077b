package ratelimit

import (
	"slices"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
)

// Engines ask a plan where the windows of its quotas begin and end.

// WindowEnd returns when the window of the i-th quota ends that now lies in, in Unix
// seconds. The time now is in Unix nanoseconds, and not before 1970.
//
// A window ends then if it opens now. One of a calendar quota that is open already keeps
// its end, if the subject had another plan or zone when it opened.
//
// A smooth quota has no windows. What is used of it now counts until the end that
// WindowEnd returns, one Window later, unless it has come back before.
func (p *Plan) WindowEnd(i int, now int64) int64 {
	switch q := &p.quotas[i]; {
	case q.burst > 0:
		return fixedwindow.Seconds(now) + 1 + int64(q.Window/time.Second)
	case !q.calendar.is:
		return fixedwindow.End(now, q.Window)
	}
	return p.calendarBoundaries(i, now)[2]
}

// WindowStart returns when the window of the i-th quota that ends at a time began. Both
// are in Unix seconds. If the calendar of the quota has no such window, because it
// opened under another plan, WindowStart returns the earliest time that its kind can
// have begun at.
//
// For the grace of a penalty, the window of a smooth quota is the Window before its
// Reset, and two seconds, so that it has always begun.
func (p *Plan) WindowStart(i int, end int64) int64 {
	switch q := &p.quotas[i]; {
	case q.burst > 0:
		return end - int64(q.Window/time.Second) - 2
	case !q.calendar.is:
		return end - int64(q.Window/time.Second)
	}
	return p.calendarStart(i, end)
}

func (p *Plan) calendarStart(i int, end int64) int64 {
	q := &p.quotas[i]
	if kept := p.boundaries[i].Load(); kept != nil && kept[2] == end {
		return kept[1]
	}
	c := q.calendar.windows(q.Window)
	if start := c.Before(end); c.After(start) == end {
		return start
	}
	return end - int64(q.Window/time.Second)
}

// Boundaries returns times at which windows of the i-th quota begin and end, in Unix
// seconds: those of four windows that follow each other. The time now, in Unix
// nanoseconds, lies in the second of them. Engines elsewhere, with another clock, can
// find the window that they are in among these.
func (p *Plan) Boundaries(i int, now int64) [5]int64 {
	q := &p.quotas[i]
	if !q.calendar.is {
		end, length := fixedwindow.End(now, q.Window), int64(q.Window/time.Second)
		return [5]int64{end - 2*length, end - length, end, end + length, end + 2*length}
	}
	return *p.calendarBoundaries(i, now)
}

// calendarBoundaries computes them only if now is in another window than the last time.
func (p *Plan) calendarBoundaries(i int, now int64) *[5]int64 {
	q := &p.quotas[i]
	t := fixedwindow.Seconds(now)
	kept := p.boundaries[i].Load()
	if kept == nil || t < kept[1] || t >= kept[2] {
		c := q.calendar.windows(q.Window)
		kept = &[5]int64{2: c.After(t)}
		kept[1] = c.Before(kept[2])
		kept[0] = c.Before(kept[1])
		kept[3] = c.After(kept[2])
		kept[4] = c.After(kept[3])
		p.boundaries[i].Store(kept)
	}
	return kept
}

// Calendar reports whether a quota of the plan has a calendar window. Engines that cannot
// count in calendar windows refuse such plans with an error that wraps [ErrInvalid].
func (p *Plan) Calendar() bool { return slices.ContainsFunc(p.quotas, Quota.Calendar) }

// windows returns where the windows of a calendar quota begin.
func (c calendar) windows(length time.Duration) fixedwindow.Calendar {
	w := fixedwindow.Calendar{In: c.in}
	if c.in == nil {
		w.In = time.UTC
	}
	if length == fixedwindow.Month {
		w.From = max(int(c.from), 1)
	}
	return w
}
