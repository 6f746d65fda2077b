package failover

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var must = testcheck.NoError

// adjust enters an adjustment of a charge that is made now, under a plan, by some units. It
// has also reached the windows of other plans.
func (j *journal) adjust(subject string, p *ratelimit.Plan, units int64, others ...*ratelimit.Plan) error {
	d := engine.Uncounted(p, max(-units, 0), time.Now())
	for i := range engine.Of(p).Len() {
		d.States[i].Reset = max(d.States[i].Reset, time.Now().Unix()+1) // also of a bucket
	}
	for i, o := range others {
		d.Receipt.Others[i] = fixedwindow.Window{Length: uint32(engine.Of(o).Kind(0) / time.Second), End: uint32(engine.Of(o).WindowEnd(0, d.Time))}
	}
	return j.enter(subject, &d, max(units, 0), "")
}

// text is what an entry holds: calls, and the units and the ends of windows.
func (e *entry) text() string {
	var lines []string
	for _, c := range e.calls {
		lines = append(lines, fmt.Sprint("call ", c.units-c.d.Cost))
	}
	for _, s := range e.sums {
		lines = append(lines, fmt.Sprint(s.units)+time.Unix(int64(s.window.End), 0).UTC().Format(" 02.15:04:05"))
	}
	return strings.Join(lines, ", ")
}

func TestEntry(t *testing.T) {
	named := func(quotas ...ratelimit.Quota) *ratelimit.Plan {
		return ratelimit.MustPlan("", ratelimit.Penalty{}, quotas...)
	}
	day := named(ratelimit.PerDay(10))
	smooth := named(ratelimit.PerMinute(60).Smooth(10), ratelimit.PerDay(100))
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
		{"charges of the same windows add up", []step{{minuteAndDay, 3, 0}, {minuteAndDay, 4, time.Second}}, "7 01.00:01:00, 7 02.00:00:00"},
		{"minutes that have ended are removed",
			[]step{{minuteAndDay, 3, 0}, {minuteAndDay, 4, time.Minute}, {minuteAndDay, 5, time.Minute}}, "12 02.00:00:00, 5 01.00:03:00"},
		{"plans share windows", []step{{minuteAndDay, 3, 0}, {day, 4, 0}, {hour, 5, 0}}, "8 01.00:01:00, 12 02.00:00:00, 5 01.01:00:00"},
		{"a day that has ended is removed", []step{{minuteAndDay, 3, 0}, {day, 4, 24 * time.Hour}}, "4 03.00:00:00"},
		{"units are given back to their window", []step{{minuteAndDay, 3, 0}, {day, -2, time.Second}}, "3 01.00:01:00, 1 02.00:00:00"},
		{"more than are held", []step{{day, 3, 0}, {day, -5, 0}}, "-2 02.00:00:00"},
		{"nothing is left", []step{{minuteAndDay, 3, 0}, {minuteAndDay, -3, 0}, {day, 1, 0}}, "1 02.00:00:00"},
		{"no sum goes over the largest limit", []step{{day, fixedwindow.MaxUnits, 0}, {day, 4, 0}, {day, -1, 0}}, "9007199254740990 02.00:00:00"},
		{"months that end at other times are apart",
			[]step{{named(ratelimit.PerMonth(9)), 3, 0}, {named(ratelimit.PerMonth(9).From(17)), 4, 0}}, "3 01.00:00:00, 4 17.00:00:00"},
		{"smooth quotas are left out", []step{{smooth, 3, 0}, {smooth, 4, 0}, {smooth, -2, 0}}, "5 02.00:00:00"},
		{"windows of other plans count as the plan's own", []step{{minute, 3, 0}, {minuteAndDay, 4, 0}}, "7 01.00:01:00, 7 02.00:00:00"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := journal{bound: 100}
				for _, s := range test.steps {
					time.Sleep(s.after)
					must(t, j.adjust("a", s.plan, s.units, others[s.plan]...))
				}
				e := j.entries["a"]
				if got := e.text(); got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
			})
		})
	}
}

// Windows that were charged the same are sent together, others in calls of their own, and each
// call names what it changes.
func TestCallsOfAnEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := journal{bound: 100}
		must(t, j.adjust("a", minuteAndDay, 3))
		time.Sleep(time.Minute)
		must(t, j.adjust("a", minuteAndDay, 4))
		must(t, j.adjust("a", ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerHour(9), ratelimit.PerMinute(9)), -2))
		var got []string
		for e := j.entries["a"]; !j.empty(); {
			c, _ := j.next(e)
			text := fmt.Sprint(c.d.Outcome, " ", c.units-c.d.Cost)
			for _, o := range c.d.Receipt.Others[:3] {
				if o.Length > 0 {
					text += fmt.Sprint(" ", o.Length, time.Unix(int64(o.End), 0).UTC().Format(" 02.15:04"))
				}
			}
			got = append(got, text)
			j.made(e, c.id)
		}
		want := "allowed 7 86400 02.00:00, allowed 2 60 01.00:02, allowed -2 3600 01.01:00"
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("the calls are %s, want %s", got, want)
		}
	})
}

// A call is kept until its windows have ended, those of other plans and smooth quotas too.
func TestCallsEnd(t *testing.T) {
	for name, test := range map[string]struct {
		plan  *ratelimit.Plan
		other *ratelimit.Plan
		ends  time.Duration
	}{
		"a day":                   {minuteAndDay, minuteAndDay, 24 * time.Hour},
		"an hour of another plan": {ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(9)), ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerHour(9)), time.Hour},
		"a smooth quota":          {ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerHour(9).Smooth(9)), minuteAndDay, time.Hour + time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			j := journal{bound: 100}
			d := engine.Uncounted(test.plan, 0, time.Now())
			if test.other != minuteAndDay {
				d.Receipt.Others[0] = fixedwindow.Window{Length: uint32(engine.Of(test.other).Kind(0) / time.Second), End: uint32(engine.Of(test.other).WindowEnd(0, d.Time))}
			}
			d.Receipt.SetGeneration(1<<32 - 1)
			must(t, j.enter("a", &d, 1, "id"))
			e := j.entries["a"]
			time.Sleep(test.ends - time.Second)
			if c, ok := j.next(e); !ok || c.d != d || c.id != "id" {
				t.Errorf("%s: a second before it ends the call is gone, want it as it was", name)
			}
			time.Sleep(time.Second)
			if _, ok := j.next(e); ok || !j.empty() {
				t.Errorf("%s: the call is kept when it has ended", name)
			}
		})
	}
}
