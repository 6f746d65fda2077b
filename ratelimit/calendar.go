package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
)

// PerMonth returns the quota of limit units a month, from 00:00 UTC on its first day.
// [Quota.From] gives it another first day, and [Quota.In] a time zone.
func PerMonth(limit int64) Quota {
	return Quota{Limit: limit, Window: fixedwindow.Month, calendar: calendar{is: true}}
}

// From returns the quota with months that begin on a day of the month, 1 to 31, such as
// the day of billing. If a month has fewer days, it begins on its last one: from 31 means
// 31 January, 28 or 29 February, 31 March. From is for [PerMonth] only; [NewPlan] refuses
// other quotas with it, and other days.
//
// A month that a subject has begun keeps its end when the day changes, and then ends
// once more on the new day. So no change counts usage twice or grants a quota twice.
func (q Quota) From(day int) Quota {
	switch {
	case q.Window != fixedwindow.Month:
		q.calendar.wrong = "Quota.From is for PerMonth only"
	case day < 1 || day > 31:
		q.calendar.wrong = fmt.Sprintf("Quota.From must be a day from 1 to 31, got %d", day)
	case day == 1:
		q.calendar.from = 0
	default:
		q.calendar.from = uint8(day)
	}
	return q
}

// In returns the quota with months or days that begin at 00:00 in a location. A day is as
// long as it is there: 23 or 25 hours where the clock changes. If a change skips 00:00,
// the day begins with the change; if it repeats 00:00, the first one counts. In is for
// [PerDay] and [PerMonth] only; [NewPlan] refuses other quotas with it, and a location
// that is nil.
//
// All days in locations are one kind of window, apart from the day of [PerDay] without In. A
// service with customers in several locations gives In to all of them, also [time.UTC]. A month
// or day that a subject has begun keeps its end when the location changes. So a customer who
// moves is not counted twice and has no quota granted twice.
func (q Quota) In(loc *time.Location) Quota {
	switch {
	case loc == nil:
		q.calendar.wrong = "Quota.In must be a location, got nil"
		return q
	case q.Window == day:
		q.Window, q.calendar.is = fixedwindow.Day, true
	case !fixedwindow.IsCalendar(q.Window):
		q.calendar.wrong = "Quota.In is for PerDay and PerMonth only"
		return q
	}
	q.calendar.in = interned(loc)
	if loc == time.UTC && q.Window == fixedwindow.Month {
		q.calendar.in = nil
	}
	return q
}

// A calendar is what a quota with a calendar window has beside its limit and kind. That
// of other quotas is zero.
type calendar struct {
	in    *time.Location // interned; nil: UTC, of a month
	from  uint8          // day of the month, 2 to 31; 0: the first
	is    bool
	wrong string // the mistake in a call of From or In, which return no error
}

func (q Quota) validateCalendar() error {
	switch {
	case q.calendar.wrong != "":
		return errors.New(q.calendar.wrong)
	case !q.calendar.is || !fixedwindow.IsCalendar(q.Window):
		return fmt.Errorf("Quota.Window of %s is reserved: make calendar windows with PerMonth or PerDay and In, and change only their Limit", durationText(q.Window))
	}
	return nil
}

// hasText returns an error if the calendar has a location that cannot be read back.
func (c calendar) hasText() error {
	if c.in == nil || c.in == time.UTC {
		return nil
	}
	if z, err := zoneNamed(c.in.String()); err != nil || z.location != c.in {
		return fmt.Errorf("the location %q has no text form: use one that time.LoadLocation returns for its name", c.in)
	}
	return nil
}

// suffix is what follows the word for the window in the text form.
func (c calendar) suffix() (text string) {
	if c.from > 0 {
		text = " from " + strconv.Itoa(int(c.from))
	}
	if c.in != nil {
		text += " in " + c.in.String()
	}
	return text
}

// parseCalendar reads the text form of a calendar window. It returns a quota without
// limit, the zero one if the text names another window.
func parseCalendar(text string) (q Quota, err error) {
	if strings.HasSuffix(text, " from") || strings.HasSuffix(text, " in") {
		text += " " // nothing follows the word: an error about that, and not about the window
	}
	rest, zone, in := strings.Cut(text, " in ")
	word, from, begins := strings.Cut(rest, " from ")
	switch {
	case word == "month":
		q = PerMonth(0)
	case word == "day" && in:
		q = PerDay(0)
	case !in && !begins:
		return q, nil
	}
	if begins {
		day, err := strconv.ParseUint(from, 10, 8)
		if err != nil || from[0] == '0' || day > 31 {
			return q, errors.New("a month must begin on a day from 1 to 31, such as month from 17")
		}
		q = q.From(int(day))
	}
	if in {
		z, err := zoneNamed(zone)
		if err != nil {
			return q, err
		}
		q = q.In(z.location)
	}
	if q.calendar.wrong != "" {
		return q, errors.New("only a month can have a day to begin from, and only a day or a month a time zone")
	}
	return q, nil
}

// windows returns where the windows of a calendar quota begin.
func (c calendar) windows(length time.Duration) fixedwindow.Calendar {
	w := fixedwindow.Calendar{In: cmp.Or(c.in, time.UTC)}
	if length == fixedwindow.Month {
		w.From = max(int(c.from), 1)
	}
	return w
}

// zones holds the locations that quotas are in, by name, so that quotas with the same
// zone are equal. There are some hundred.
var zones sync.Map // of *zone

type zone struct {
	location *time.Location
	same     atomic.Pointer[time.Location] // another one that was found to be the same zone
}

// zoneNamed returns the zone that time.LoadLocation knows by a name.
func zoneNamed(name string) (*zone, error) {
	if z, ok := zones.Load(name); ok {
		return z.(*zone), nil
	}
	bad := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/_+-", r))
	}
	if name == "" || name == "Local" || strings.ContainsFunc(name, bad) || strings.Contains("/"+name+"/", "//") {
		return nil, fmt.Errorf("the time zone %q must be a name such as Europe/Berlin or UTC", name)
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("the time zone %q is not known: %w", name, err)
	}
	z, _ := zones.LoadOrStore(name, &zone{location: location})
	return z.(*zone), nil
}

// interned returns the location that the name of loc leads to, if that is the same zone,
// and otherwise loc.
func interned(loc *time.Location) *time.Location {
	z, err := zoneNamed(loc.String())
	switch {
	case err != nil:
		return loc
	case z.location == loc || z.same.Load() == loc:
		return z.location
	case sameZone(z.location, loc):
		z.same.Store(loc)
		return z.location
	}
	return loc
}

// sameZone reports whether two locations have the same offset at every time that engines know,
// 1970 to 2106.
func sameZone(a, b *time.Location) bool {
	for t := time.Unix(0, 0); t.Year() <= 2106; {
		_, x := t.In(a).Zone()
		_, y := t.In(b).Zone()
		_, end := t.In(a).ZoneBounds()
		_, other := t.In(b).ZoneBounds()
		if x != y || !end.Equal(other) {
			return false
		}
		if end.IsZero() {
			break
		}
		t = t.Add(time.Hour) // at least: in the far future the end may be past, see firstInstant of package fixedwindow
		if t.Before(end) {
			t = end
		}
	}
	return true
}
