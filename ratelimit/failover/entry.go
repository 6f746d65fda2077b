package failover

import (
	"cmp"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit/internal/gcra"
)

// An entry is the usage of one subject that the primary does not know of. The lock
// of the journal's shard guards it, and merging is a semaphore.
type entry struct {
	subject string
	merging chan struct{} // full while a goroutine merges the entry
	charges []charge      // one for each combination of windows

	// Of an entry that the primary refused although it answered a probe:
	failures int
	due      time.Time // when it is tried again
}

// maxCharges is the largest number of charges in an entry. A subject has one, one more
// if the outcome of a charge is unknown, and one for each plan with other windows.
const maxCharges = 8

// A charge is what was used under one plan, in each of the windows that the time at
// lies in.
type charge struct {
	plan  *ratelimit.Plan
	at    int64 // the latest admission, Unix nanoseconds
	units [ratelimit.MaxQuotas]int64
	// begun is when the first of the units of a smooth quota was used, and since is when
	// they begin to come back: after what the subject owed before. Both are Unix
	// nanoseconds. Before the charge is in the journal, begun is 0, and since may be.
	begun, since [ratelimit.MaxQuotas]int64
	// id is set when the charge is first sent. From then on nothing is added: the
	// primary may have made the charge, and would take a larger one with this id for
	// a repetition.
	id string
}

// add adds units that were admitted under plan. It reports whether there was room.
func (e *entry) add(plan *ratelimit.Plan, units, at int64) bool {
	return e.enter(charge{plan: plan, at: at, units: inEach(plan, units)})
}

// enter adds a charge. It reports whether there was room.
func (e *entry) enter(c charge) bool {
	for i := range e.charges {
		if o := &e.charges[i]; o.id == "" && c.id == "" && sameWindows(o.plan, c.plan) {
			o.add(&c)
			return true
		}
	}
	if len(e.charges) == maxCharges {
		return false
	}
	for i := range c.since {
		c.begun[i], c.since[i] = c.at, max(c.since[i], c.at)
	}
	e.charges = append(e.charges, c)
	return true
}

// inEach returns so many units for each quota of a plan.
func inEach(plan *ratelimit.Plan, units int64) (each [ratelimit.MaxQuotas]int64) {
	for i := range plan.Len() {
		each[i] = min(units, ratelimit.MaxLimit)
	}
	return each
}

// comeBack returns since when the units of an admission by the local engine, which d is,
// come back.
func comeBack(d *ratelimit.Decision) (since [ratelimit.MaxQuotas]int64) {
	for i := range d.Plan.Len() {
		if q := d.Plan.Quota(i); q.Burst() > 0 {
			span := gcra.New(q.Limit, q.Window, q.Burst()).Span(d.Cost)
			since[i] = (gcra.Of(d.States[i].Reset, d.Rounded[i]) - gcra.Time(span)).Nanos()
		}
	}
	return since
}

// add adds the units of another charge to each window. Of two different windows of one
// length the later one counts. Units from before it, entered late or after the clock
// stepped back, count in it too, so that no usage is lost.
func (c *charge) add(other *charge) {
	at := other.at
	for i := range c.plan.Len() {
		switch {
		case c.plan.Kind(i) < 0:
			if c.owed(i, at) == 0 {
				c.units[i], c.begun[i], c.since[i] = 0, at, max(other.since[i], at)
			}
		case at > c.at && c.plan.WindowEnd(i, at) != c.plan.WindowEnd(i, c.at):
			c.units[i] = 0
		}
		c.units[i] = min(c.units[i]+other.units[i], ratelimit.MaxLimit)
	}
	c.at = max(c.at, at)
}

// owed returns the units of the i-th quota, of a smooth one without those that have come
// back at a time.
func (c *charge) owed(i int, at int64) int64 {
	if c.plan.Kind(i) > 0 {
		return c.units[i]
	}
	q := c.plan.Quota(i)
	back := gcra.New(q.Limit, q.Window, q.Burst()).Back(time.Duration(max(at-cmp.Or(c.since[i], c.at), 0)))
	return max(c.units[i]-back, 0)
}

// allOwed returns the units that are owed at the time of the charge.
func (c *charge) allOwed() (units [ratelimit.MaxQuotas]int64) {
	for i := range c.plan.Len() {
		units[i] = c.owed(i, c.at)
	}
	return units
}

// advance makes a time that of the charge, if all of its windows are still open then. What
// is owed of smooth quotas is most exact when the charge is sent.
func (c *charge) advance(now int64) {
	smooth := false
	for i := range c.plan.Len() {
		if c.plan.Kind(i) < 0 {
			smooth = true
		} else if c.plan.WindowEnd(i, now) != c.plan.WindowEnd(i, c.at) {
			return
		}
	}
	if smooth {
		c.at = max(c.at, now)
	}
}

// refunded reports whether nothing is left to charge, and nothing was sent.
func (c *charge) refunded() bool { return c.id == "" && slices.Max(c.units[:]) == 0 }

// used returns the most units in a window that has not ended.
func (e *entry) used(now int64) (most int64) {
	for k := range e.charges {
		c := &e.charges[k]
		for i := range c.plan.Len() {
			if c.plan.WindowEnd(i, c.at) > fixedwindow.Seconds(now) {
				most = max(most, c.owed(i, now))
			}
		}
	}
	return most
}

// credit takes units back from the windows that the time at lies in, and reports
// whether it did: not if the charge was sent, or one of the windows has fewer.
func (e *entry) credit(plan *ratelimit.Plan, units, at int64) bool {
	for k := range e.charges {
		c := &e.charges[k]
		if c.id != "" || !sameWindows(c.plan, plan) {
			continue
		}
		left := c.units
		for i := range plan.Len() {
			if plan.Kind(i) < 0 && at >= c.begun[i] || plan.WindowEnd(i, c.at) == plan.WindowEnd(i, at) {
				left[i] -= units
			}
		}
		if left != c.units && slices.Min(left[:]) >= 0 {
			c.units = left
			return true
		}
	}
	return false
}

func sameWindows(a, b *ratelimit.Plan) bool {
	same := a.Len() == b.Len()
	for i := 0; same && i < a.Len(); i++ {
		same = a.Kind(i) == b.Kind(i)
	}
	return same
}
