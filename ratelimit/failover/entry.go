package failover

import (
	"math"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// An entry is what the primary does not know of one subject yet: first the orders,
// in the order of the fields, then the usage.
type entry struct {
	subject string
	reset   bool
	unban   bool
	ban     int64   // when the ban ends, Unix nanoseconds; 0: there is none
	usage   []usage // one for each combination of windows
	first   [1]usage
	free    chan struct{} // closed once no call needs to wait for its merging

	// Of an entry that the primary refused although it answered something else:
	tries int   // how often; 0: it was not refused
	due   int64 // when it is tried again, in the journal's time
}

// maxUsage is how many usages an entry has at most. A subject has one, one more
// for each change of its plan to other windows, and one for each charge whose
// outcome is not known: a primary that hangs leaves one in each budget until the
// circuit opens.
const maxUsage = 64

func newEntry(subject string) *entry {
	e := &entry{subject: subject}
	e.usage = e.first[:0]
	return e
}

// usage is what was used under one plan: in each of its windows that the time at
// lies in.
type usage struct {
	plan  *ratelimit.Plan
	at    int64 // the latest admission, Unix nanoseconds
	units [ratelimit.MaxQuotas]int64
	// mark is that of the charge. It is set when the charge is first sent, and
	// from then on nothing is added: the primary may have made the charge, and
	// would take a larger one with this mark for the same.
	mark string
}

// empty reports whether there is nothing to tell the primary.
func (e *entry) empty() bool { return !e.reset && !e.unban && e.ban == 0 && len(e.usage) == 0 }

// add adds units to the usage under plan. It reports whether there was room.
func (e *entry) add(plan *ratelimit.Plan, units, at int64) bool {
	u := usage{plan: plan, at: at}
	for i := range plan.Len() {
		u.units[i] = units
	}
	if o := e.open(plan); o != nil {
		o.merge(u)
		return true
	}
	return e.append(u)
}

// open returns the usage to which more can be added under plan, nil if there is
// none.
func (e *entry) open(plan *ratelimit.Plan) *usage {
	for i := range e.usage {
		if u := &e.usage[i]; u.mark == "" && sameWindows(u.plan, plan) {
			return u
		}
	}
	return nil
}

// append appends u. It reports whether there was room; if not, the oldest usage
// was dropped.
func (e *entry) append(u usage) bool {
	whole := len(e.usage) < maxUsage
	if !whole {
		e.usage = slices.Delete(e.usage, 0, 1)
	}
	e.usage = append(e.usage, u)
	return whole
}

// clockStep is more than it takes from an admission to its entry. An admission
// by so much earlier than one entered before it was made after a step back of
// the clock.
const clockStep = int64(time.Second)

// merge adds o, which was entered after u and whose windows have the same
// lengths. Of two windows of one length that are not the same one, the later
// counts. After a step back of the clock the later window counts for both, so
// that no usage is lost.
func (u *usage) merge(o usage) {
	stepped := u.at-o.at > clockStep
	if o.at > u.at {
		*u, o = o, *u
	}
	for i := range u.plan.Len() {
		if length := int64(u.plan.Quota(i).Window); stepped || u.at/length == o.at/length {
			u.units[i] = min(u.units[i]+o.units[i], ratelimit.MaxLimit)
		}
	}
}

// roll forgets what was used in windows that have ended.
func (u *usage) roll(now int64) {
	for i := range u.plan.Len() {
		if length := int64(u.plan.Quota(i).Window); u.at/length < now/length {
			u.units[i] = 0
		}
	}
}

// credit takes units back from the windows that the time at lies in.
func (e *entry) credit(plan *ratelimit.Plan, units, at int64) (taken bool) {
	for k := range e.usage {
		u := &e.usage[k]
		if u.mark != "" || !sameWindows(u.plan, plan) {
			continue // the primary may have been charged
		}
		for i := range plan.Len() {
			if length := int64(plan.Quota(i).Window); u.at/length == at/length && u.units[i] > 0 {
				u.units[i] = max(u.units[i]-units, 0)
				taken = true
			}
		}
	}
	return taken
}

// ordered is more than can be used: an entry with an order counts for so much.
const ordered = math.MaxInt64

// used returns the most units in one window that has not ended.
func (e *entry) used(now int64) (most int64) {
	if e.reset || e.unban || e.ban > now {
		return ordered
	}
	for _, u := range e.usage { // copies
		u.roll(now)
		most = max(most, slices.Max(u.units[:]))
	}
	return most
}

// follow puts what older says before what e says. It reports whether there was
// room.
func (e *entry) follow(older *entry) (whole bool) {
	if e.reset {
		return true
	}
	e.tries, e.due = max(e.tries, older.tries), max(e.due, older.due)
	if !e.unban && e.ban == 0 {
		e.unban, e.ban = older.unban, older.ban
	}
	e.reset = older.reset
	whole = true
	for _, u := range older.usage {
		if o := e.open(u.plan); o != nil && u.mark == "" {
			u.merge(*o)
			*o = u
		} else {
			whole = e.append(u) && whole
		}
	}
	return whole
}

// The orders. Each undoes those before it that mean nothing any more.

func (e *entry) orderReset() {
	e.forget()
	e.reset = true
	e.tries, e.due = 0, 0
}

// forget undoes all that e says.
func (e *entry) forget() {
	e.reset, e.unban, e.ban = false, false, 0
	e.usage = e.first[:0]
}

func (e *entry) orderUnban() { e.unban, e.ban = true, 0 }

func (e *entry) orderBan(ends time.Time) { e.ban = ends.UnixNano() }

// ordersBan reports whether e says if there is a ban.
func (e *entry) ordersBan() bool { return e.reset || e.unban || e.ban != 0 }

// forgetBan undoes the orders to ban and to unban.
func (e *entry) forgetBan() { e.unban, e.ban = false, 0 }

func sameWindows(a, b *ratelimit.Plan) bool {
	if a == b {
		return true
	}
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if a.Quota(i).Window != b.Quota(i).Window {
			return false
		}
	}
	return true
}
