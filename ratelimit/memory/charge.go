package memory

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/fixedwindow"
)

// charge adds d.Cost, which fits into the windows of the plan, to every window.
// A window that is not the plan's, and has no room for it, is left full. A smooth quota
// that is not the plan's is not charged.
func (a *account) charge(d *ratelimit.Decision) {
	a.count += uint32(d.Cost)
	for i := range a.windows() {
		if w := &a.all[i]; !w.isSmooth() {
			w.add(d.Cost)
		}
	}
	for i := range d.Plan.Len() {
		d.States[i].Remaining -= d.Cost
		if d.Plan.Kind(i) < 0 {
			a.chargeSmooth(d, i)
		}
	}
}

// add adds units, up to ratelimit.MaxLimit in all.
func (w *window) add(units int64) { w.used = min(w.used+units, ratelimit.MaxLimit) }

// refund takes back what d was charged, from those of its windows that are still
// the subject's.
func (a *account) refund(d *ratelimit.Decision, now int64) {
	for i := range d.Plan.Len() {
		if d.Plan.Kind(i) < 0 {
			a.refundSmooth(d, i, now)
		} else if w := a.window(d.Plan.Kind(i)); w != nil && w.end == d.States[i].Reset {
			w.used -= min(d.Cost, w.used)
		}
	}
}

// addUsage adds units[i] to the window of the plan's i-th quota, unless the window
// in which the time at lies is over. It reports whether it added any. Units of the
// next window move the subject's window there, with what it holds. The account has
// been rolled to now.
//
// A calendar window may have begun under another plan. Units from between its start
// and its end are its own, whatever the calendar of this plan says.
func (a *account) addUsage(plan *ratelimit.Plan, units [ratelimit.MaxQuotas]int64, at, now int64) (added bool) {
	for i := range plan.Len() {
		w := a.window(plan.Kind(i))
		end, before := plan.WindowEnd(i, at), at < w.end*int64(time.Second)
		inside := before && fixedwindow.Seconds(at) >= plan.WindowStart(i, w.end) && !w.isSmooth()
		if units[i] == 0 || !inside && end*int64(time.Second) <= now {
			continue
		}
		if w.isSmooth() {
			a.addSmoothUsage(plan, i, units[i], at, now)
			added = true
			continue
		}
		w.hold(plan, i)
		w.add(units[i])
		if !before {
			w.end = max(w.end, min(end, fixedwindow.LatestEnd(now, w.length)))
		}
		added = true
	}
	return added
}
