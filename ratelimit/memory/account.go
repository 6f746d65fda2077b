package memory

import (
	"slices"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// maxWindows is how many windows of one subject are counted at once: the windows of
// its plan, and windows of an earlier plan that have not ended.
const maxWindows = 2 * engine.MaxQuotas

// kindOf returns the kind of the plan's i-th quota.
func kindOf(plan *ratelimit.Plan, i int) fixedwindow.Kind {
	return fixedwindow.Kind(engine.Of(plan).Kind(i))
}

// quotaOf returns the number of the plan's quota that has a kind, or -1.
func quotaOf(plan *ratelimit.Plan, kind fixedwindow.Kind) int {
	return engine.Of(plan).Find(time.Duration(kind))
}

// A window is one window of an account, or the bucket of a smooth quota, whose fields the
// functions of smooth.go read and write. There are four fields, since so many fit into registers.
type window struct {
	kind  fixedwindow.Kind
	limit int64      // the smallest that it was measured against, rounded down by roundLimit, or notBegun
	used  int64      // units, at most fixedwindow.MaxUnits; of a bucket see rounded
	end   unixSecond // from then on it means nothing; of a bucket see full
}

// notBegun is the limit of a window that has not begun: nothing was charged to it. A denied
// request leaves such windows to the next one. It is above every limit.
const notBegun = fixedwindow.MaxUnits + 1

func (w *window) begun() bool { return w.limit < notBegun }

// open reports whether now lies in the window. It does not if the window is
// over, nor if the clock stepped back to a time before it, and never of a smooth quota.
func (w window) open(now instant) bool {
	left := w.end.instant().since(now)
	return left > 0 && left <= time.Duration(w.kind) // which is negative of a smooth quota
}

// fits reports whether one word counts so many units more, whatever the limit.
func (w window) fits(cost int64) bool { return cost <= maxNarrow-w.used }

// An account is the usage of a subject, unpacked from its slot. Its methods are
// arithmetic: they take the time as an argument and touch nothing else.
type account struct {
	count  uint32 // all units ever charged, modulo 2³²
	n      int
	all    [maxWindows]window // n of them, in the order of their kinds
	coming int64              // units that are charged once there is room for the account
}

func (a *account) windows() []window { return a.all[:a.n] }

// endsNoWindowBy reports whether no window has ended by a time.
func (a *account) endsNoWindowBy(at unixSecond) bool {
	ends := func(w window) bool { return !w.isSmooth() && w.end <= at }
	return !slices.ContainsFunc(a.windows(), ends)
}

// read fills the account from a slot that has the meter m.
func (a *account) read(l *layout, s slot, m meter) {
	a.count, a.n = m.count(), l.n
	for i := range a.n {
		a.all[i] = l.anyWindow(i, s, m)
	}
}

// write puts the windows into a slot that is frozen and is to have the layout. A calendar
// window that has not begun counts as over: the next request may open it with another end,
// under another plan.
func (a *account) write(s slot, l *layout) {
	for i, w := range a.windows() {
		if !w.begun() && w.kind.IsCalendar() {
			w.end = 0
		}
		switch second := l.secondWord(i); {
		case w.isSmooth():
			s.setWindow(i, newBucketWord(w.end, w.rounded()))
		case second > 0:
			s.setWindow(i, newWindowWord(a.count, w.end))
			s.setWord(second, uint64(w.used))
		default:
			s.setWindow(i, newWindowWord(a.count-uint32(w.used), w.end))
		}
	}
}

// layout returns the layout that the account needs.
func (a *account) layout() (l layout) {
	l.n = a.n
	for i, w := range a.windows() {
		l.kinds[i], l.limits[i] = w.kind, w.limit
		if !w.isSmooth() && !w.fits(a.coming) {
			l.wide |= 1 << i
		}
	}
	return l
}

// expire drops the windows that have ended, and those that have not begun.
//
// After the clock stepped back, windows lie in the future. They go on, so that
// nothing of them is granted twice. But none is left more than one window ahead, so that
// a clock that was years ahead does not lock a subject out for years.
func (a *account) expire(now instant) {
	kept := 0
	for _, w := range a.windows() {
		if !w.isSmooth() { // rollSmooth limits the smooth windows of the plan
			w.end = min(w.end, w.latestEnd(now))
		}
		if w.inUse(now) {
			a.all[kept] = w
			kept++
		}
	}
	a.n = kept
}

// inUse reports whether a window has begun and is not over, or a bucket is not full.
func (w *window) inUse(now instant) bool {
	if w.isSmooth() {
		return w.full() > gcra.At(int64(now))
	}
	return w.end.instant() > now && w.begun()
}

// roll brings the account, which has been expired, to plan: it opens the windows of the plan
// that are missing, and measures all windows of the plan that have begun against its limits.
func (a *account) roll(now instant, plan *ratelimit.Plan) {
	for i := range engine.Of(plan).Len() {
		kind := kindOf(plan, i)
		if kind.IsSmooth() {
			a.rollSmooth(now, plan, i)
			continue
		}
		if w := a.window(kind); w != nil {
			w.measure(plan, i)
			continue
		}
		end := unixSecond(engine.Of(plan).WindowEnd(i, int64(now)))
		a.openWindow(plan, window{kind: kind, limit: notBegun, end: end})
	}
}

// measureOf is what usage of the plan's i-th quota is measured against, so that a subject that
// has used much of a soft quota is kept as well.
func measureOf(plan *ratelimit.Plan, i int) int64 { return roundLimit(plan.Numbers().Quota(i).Shown) }

// measure measures a window against the limit of the plan's i-th quota, which is not smooth. It
// then has begun.
func (w *window) measure(plan *ratelimit.Plan, i int) {
	w.limit = min(w.limit, measureOf(plan, i))
}

// begin begins the windows of the plan, for a request of so many units.
func (a *account) begin(plan *ratelimit.Plan, cost int64) {
	a.coming = cost
	for i := range engine.Of(plan).Len() {
		if w := a.window(kindOf(plan, i)); !w.isSmooth() {
			w.measure(plan, i)
		}
	}
}

// openWindow puts a window of the plan in its place in the order of kinds. If there are too many,
// it drops one that is not the plan's.
func (a *account) openWindow(plan *ratelimit.Plan, w window) *window {
	if a.n == maxWindows {
		i := a.replaceable(plan)
		copy(a.all[i:], a.all[i+1:])
		a.n--
	}
	i := 0
	for i < a.n && a.all[i].kind < w.kind {
		i++
	}
	copy(a.all[i+1:a.n+1], a.all[i:a.n])
	a.all[i] = w
	a.n++
	return &a.all[i]
}

// replaceable returns the index of the window that ends first, of those that are
// not the plan's. Of several that end together it is the shortest, and a smooth quota last.
func (a *account) replaceable(plan *ratelimit.Plan) int {
	first := -1
	for i, w := range a.windows() {
		if quotaOf(plan, w.kind) >= 0 {
			continue
		}
		if first < 0 || w.end < a.all[first].end || w.end == a.all[first].end && a.all[first].isSmooth() {
			first = i
		}
	}
	return first
}

// window returns the window of a kind, or nil.
func (a *account) window(kind fixedwindow.Kind) *window {
	for i := range a.windows() {
		if a.all[i].kind == kind {
			return &a.all[i]
		}
	}
	return nil
}

// states puts what each quota of the plan has left into d, and reports whether
// d.Cost fits into all of them. The account has been rolled.
func (a *account) states(d *ratelimit.Decision) (fits bool) {
	fits = true
	for i := range engine.Of(d.Plan).Len() {
		w := a.window(kindOf(d.Plan, i))
		if w.isSmooth() {
			a.smoothState(d, i)
		} else {
			d.States[i] = ratelimit.State{Remaining: max(engine.Of(d.Plan).Limit(i)-w.used, 0), Reset: int64(w.end)}
		}
		fits = fits && d.States[i].Remaining >= d.Cost
	}
	return fits
}

// charge adds d.Cost, which fits into the windows of the plan, to every window.
// A window that is not the plan's, and has no room for it, is left full. A smooth quota
// that is not the plan's is not charged.
func (a *account) charge(d *ratelimit.Decision) {
	a.count += uint32(d.Cost)
	others := 0
	for i := range a.windows() {
		if w := &a.all[i]; !w.isSmooth() {
			w.add(d.Cost)
			if quotaOf(d.Plan, w.kind) < 0 {
				d.Receipt.Others[others] = w.receipt()
				others++
			}
		}
	}
	for i := range engine.Of(d.Plan).Len() {
		d.States[i].Remaining -= d.Cost
		if kindOf(d.Plan, i).IsSmooth() {
			a.chargeSmooth(d, i)
		}
	}
}

// receipt is what the receipt of a charge has of a window of another plan.
func (w *window) receipt() fixedwindow.Window {
	return fixedwindow.Window{Length: uint32(w.kind.Seconds()), End: uint32(w.end)}
}

// add adds units, up to fixedwindow.MaxUnits in all.
func (w *window) add(units int64) { w.used = min(w.used+units, fixedwindow.MaxUnits) }

// adjust makes the charge d cost so many units more, or less if they are negative, after freeze.
func (s *subject) adjust(d *ratelimit.Decision, units int64) {
	a, now := &s.account, s.now
	a.expire(now)
	for i := range engine.Of(d.Plan).Len() {
		switch kind, end := kindOf(d.Plan, i), unixSecond(d.States[i].Reset); {
		case end == 0:
		case kind.IsSmooth():
			s.adjustSmooth(d, i, units)
		default:
			charged := window{kind: kind, limit: measureOf(d.Plan, i), end: end}
			a.adjustWindow(d, charged, units, now)
		}
	}
	for _, o := range d.Receipt.Others {
		if o.Length > 0 {
			kind := fixedwindow.KindOf(int64(o.Length))
			charged := window{kind: kind, limit: fixedwindow.MaxUnits, end: unixSecond(o.End)}
			a.adjustWindow(d, charged, units, now)
		}
	}
}

// openedAfter reports whether w was opened after a charge of a window of its kind that ended then,
// to which units are to be added. Calendar windows that are open at once can end at different
// times, and units are added where that is in doubt.
func (w *window) openedAfter(end unixSecond, units int64) bool {
	if w.kind.IsCalendar() {
		return units < 0 && w.end.since(end) >= wholeSeconds(fixedwindow.Apart(w.kind.Length()))
	}
	return w.end > end
}

// adjustWindow adds units to the window that was charged, or gives them back if they are
// negative. The account has been expired.
func (a *account) adjustWindow(d *ratelimit.Decision, charged window, units int64, now instant) {
	w := a.window(charged.kind)
	latest := min(charged.end, charged.latestEnd(now))
	switch {
	case charged.end.instant() <= now: // it is over
	case w == nil && units > 0:
		charged.used, charged.end = units, latest
		a.openWindow(d.Plan, charged)
	case w == nil || w.openedAfter(charged.end, units):
	case units > 0:
		w.add(units)
		w.limit = min(w.limit, charged.limit)
		if timeOf(d) >= w.end.instant() {
			w.end = latest
		}
	default:
		w.used -= min(-units, w.used)
	}
}
