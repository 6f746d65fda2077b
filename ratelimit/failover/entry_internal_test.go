package failover

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var must = testcheck.NoError

// adjust enters an adjustment of a charge of one unit at a time, after the beginning, under
// a plan, to some units. It has also reached the windows of other plans.
func (j *journal) adjust(subject string, p *ratelimit.Plan, units int64, at time.Time, others ...*ratelimit.Plan) error {
	d := engine.Uncounted(p, 0, at)
	for i, o := range others {
		d.Receipt.Others[i] = fixedwindow.Window{Length: uint32(of(o).Kind(0) / time.Second), End: uint32(of(o).WindowEnd(0, at.UnixNano()))}
	}
	for i := range of(p).Len() {
		if of(p).Kind(i) < 0 { // of an empty bucket that is charged so many units
			b := (&charge{d: d, smooth: i + 1}).bucket()
			d.States[i].Reset = at.Unix() + int64(b.Span(max(units, 0))>>32)
		}
	}
	if units < 0 {
		d.Cost, units = -units, 0
	}
	return j.enter(subject, &d, units, "", at.UnixNano(), nil)
}

// text is what an entry holds: the units, and the windows that are named.
func (e *entry) text() string {
	var lines []string
	for _, c := range e.charges {
		text := fmt.Sprint(c.units)
		if c.smooth > 0 {
			text = fmt.Sprintf("%.1fs", float64(c.units)/(1<<32))
		}
		for i := range of(c.d.Plan).Len() {
			if end := c.d.States[i].Reset; end != 0 {
				text += time.Unix(end, 0).UTC().Format(" 02.15:04:05")
			}
		}
		for _, o := range c.d.Receipt.Others {
			if o.Length > 0 {
				text += time.Unix(int64(o.End), 0).UTC().Format(" +02.15:04:05")
			}
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, ", ")
}

func TestEntry(t *testing.T) {
	named := func(quotas ...ratelimit.Quota) *ratelimit.Plan {
		return ratelimit.MustPlan("", ratelimit.Penalty{}, quotas...)
	}
	day := named(ratelimit.PerDay(10))
	smooth := named(ratelimit.PerMinute(60).Smooth(10), ratelimit.PerDay(100))
	slower := named(ratelimit.PerMinute(30).Smooth(10))
	minute, hour := named(ratelimit.PerMinute(10)), named(ratelimit.PerHour(10))
	type step struct {
		plan  *ratelimit.Plan
		units int64
		after time.Duration
	}
	others := map[*ratelimit.Plan][]*ratelimit.Plan{minute: {day}, hour: {minute, day}}
	for _, test := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"charges of the same windows add up", []step{{minuteAndDay, 3, 0}, {minuteAndDay, 4, time.Second}}, "7 01.12:01:00 02.00:00:00"},
		{"those of minutes that have ended name the day alone",
			[]step{{minuteAndDay, 3, 0}, {minuteAndDay, 4, time.Minute}, {minuteAndDay, 5, 2 * time.Minute}, {minuteAndDay, 6, 3 * time.Minute}},
			"12 02.00:00:00, 6 01.12:04:00 02.00:00:00"},
		{"and are one with those under a plan of the day", []step{{minuteAndDay, 3, 0}, {day, 4, time.Minute}}, "7 02.00:00:00"},
		{"other windows are apart", []step{{minuteAndDay, 3, 0}, {day, 4, 0}, {minuteAndDay, 5, 0}}, "8 01.12:01:00 02.00:00:00, 4 02.00:00:00"},
		{"a day that has ended is removed", []step{{minuteAndDay, 3, 0}, {day, 4, 24 * time.Hour}}, "4 03.00:00:00"},
		{"units are given back to their window", []step{{minuteAndDay, 3, 0}, {minuteAndDay, -2, time.Second}}, "1 01.12:01:00 02.00:00:00"},
		{"more than are held", []step{{minuteAndDay, 3, 0}, {minuteAndDay, -5, 0}}, "-2 01.12:01:00 02.00:00:00"},
		{"nothing is left", []step{{minuteAndDay, 3, 0}, {minuteAndDay, -3, 0}, {day, 1, 0}}, "1 02.00:00:00"},
		{"no sum goes over the largest limit", []step{{day, fixedwindow.MaxUnits, 0}, {day, 4, 0}}, "9007199254740991 02.00:00:00"},
		{"months that end at other times are apart",
			[]step{{named(ratelimit.PerMonth(9)), 3, 0}, {named(ratelimit.PerMonth(9).From(17)), 4, 0}}, "3 01.00:00:00, 4 17.00:00:00"},
		{"smooth quotas are apart from windows, and from other rates",
			[]step{{smooth, 3, 0}, {smooth, 4, 0}, {slower, 2, 0}}, "7.0s 01.12:00:04, 7 02.00:00:00, 4.0s 01.12:00:04"},
		{"of a smooth quota the latest bucket counts after a refund", []step{{smooth, 5, 0}, {smooth, -3, 0}, {day, 1, 0}}, "2.0s 01.12:00:00, 3 02.00:00:00"},
		{"what is given back to a smooth quota fades once, and never grows",
			[]step{{smooth, -8, 0}, {day, 1, 2 * time.Second}, {day, 1, 4 * time.Second}, {day, 1, time.Second}}, "-4.0s 01.12:00:00, -5 02.00:00:00"},
		{"and is over then", []step{{smooth, -8, 0}, {day, 1, 10 * time.Second}}, "-7 02.00:00:00"},
		{"windows of other plans count as the plan's own", []step{{minute, 3, 0}, {minuteAndDay, 4, 0}}, "7 01.12:01:00 +02.00:00:00"},
		{"and end as these do", []step{{hour, 3, 0}, {hour, 4, time.Minute}, {hour, 5, time.Hour}, {day, 6, time.Hour}},
			"13 +02.00:00:00, 5 01.14:00:00 +01.13:01:00 +02.00:00:00"},
		{"at once", []step{{hour, 3, 0}, {day, 4, time.Minute}}, "3 01.13:00:00 +02.00:00:00, 4 02.00:00:00"},
		{"of a smooth quota the bucket that is full later counts", []step{{smooth, 5, 0}, {smooth, 3, 0}}, "8.0s 01.12:00:05, 8 02.00:00:00"},
		{"also without one of the plan's own", []step{{minute, 3, 0}, {minute, 4, time.Minute}}, "3 +02.00:00:00, 4 01.12:02:00 +02.00:00:00"},
		{"one more is another charge", []step{{hour, 3, 0}, {minuteAndDay, 4, 0}, {minute, 5, 0}}, "3 01.13:00:00 +01.12:01:00 +02.00:00:00, 9 01.12:01:00 02.00:00:00"},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := journal{bound: 100}
			for _, s := range test.steps {
				must(t, j.adjust("a", s.plan, s.units, began.Add(s.after), others[s.plan]...))
			}
			e, _ := j.find("a")
			if got := e.text(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if n := j.charges; n != len(e.charges) {
				t.Errorf("%d charges are counted, want %d", n, len(e.charges))
			}
		})
	}
}

// If the clock steps back between two admissions, the later time counts.
func TestEntryKeepsTheLatestTime(t *testing.T) {
	smooth := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(10))
	for _, p := range []*ratelimit.Plan{minuteAndDay, smooth} {
		for _, order := range [][2]time.Duration{{0, time.Second}, {time.Second, 0}} {
			j := journal{bound: 100}
			for _, after := range order {
				must(t, j.adjust("a", p, 1, began.Add(after)))
			}
			e, _ := j.find("a")
			if c, want := e.charges[0], began.Add(time.Second).UnixNano(); c.d.Time != want || c.at != want {
				t.Errorf("charges under %v, %v after the beginning: the sum has the times %d and %d, want %d", p, order, c.d.Time, c.at, want)
			}
		}
	}
}

// What has no length in the receipt of a lease is no window that keeps a charge.
func TestChargeOfALeaseExpires(t *testing.T) {
	c := charge{d: engine.Uncounted(minuteAndDay, 1, began)}
	c.d.Receipt.SetGeneration(1<<32 - 1)
	if c.expire(began.Add(48 * time.Hour).UnixNano()) {
		t.Error("a charge is kept when its windows have ended")
	}
}
