package memory

import (
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
)

// charge adds d.Cost, which fits into the windows of the plan, to every window.
// A window that is not the plan's, and has no room for it, is left full. A smooth quota
// that is not the plan's is not charged.
func (a *account) charge(d *ratelimit.Decision) {
	a.count += uint32(d.Cost)
	others := 0
	for i := range a.windows() {
		if w := &a.all[i]; !w.isSmooth() {
			w.add(d.Cost)
			if quotaOf(d.Plan, w.length) < 0 {
				d.Receipt.Others[others] = fixedwindow.Window{Length: uint32(w.length / time.Second), End: uint32(w.end)}
				others++
			}
		}
	}
	for i := range of(d.Plan).Len() {
		d.States[i].Remaining -= d.Cost
		if of(d.Plan).Kind(i) < 0 {
			a.chargeSmooth(d, i)
		}
	}
}

// add adds units, up to fixedwindow.MaxUnits in all.
func (w *window) add(units int64) { w.used = min(w.used+units, fixedwindow.MaxUnits) }

// adjust makes the charge d cost so many units more, or less if they are negative.
func (a *account) adjust(d *ratelimit.Decision, units, now int64) {
	for i := range of(d.Plan).Len() {
		switch kind, end := of(d.Plan).Kind(i), d.States[i].Reset; {
		case end == 0:
		case kind < 0:
			a.adjustSmooth(d, i, units, now)
		default:
			a.adjustWindow(d, window{kind, roundLimit(of(d.Plan).Limit(i)), units, end}, now)
		}
	}
	for _, o := range d.Receipt.Others {
		if o.Length > 0 {
			a.adjustWindow(d, window{time.Duration(o.Length) * time.Second, fixedwindow.MaxUnits, units, int64(o.End)}, now)
		}
	}
}

// openedLater reports whether w was opened after a charge. Calendar windows that are open
// at once can end at different times, and units are added where that is in doubt.
func openedLater(w, charged *window) bool {
	if fixedwindow.IsCalendar(w.length) {
		return charged.used < 0 && w.end-charged.end >= fixedwindow.Apart(w.length)
	}
	return w.end > charged.end
}

// adjustWindow adds the units of a charge to the window that ends with it, or gives them
// back. The account has been expired.
func (a *account) adjustWindow(d *ratelimit.Decision, charged window, now int64) {
	w := a.window(charged.length)
	latest := min(charged.end, fixedwindow.LatestEnd(now, charged.length))
	switch {
	case charged.end*int64(time.Second) <= now: // it is over
	case w == nil && charged.used > 0:
		charged.end = latest
		a.openWindow(d.Plan, charged)
	case w == nil || openedLater(w, &charged):
	case charged.used > 0:
		w.add(charged.used)
		w.limit = min(w.limit, charged.limit)
		if d.Time >= w.end*int64(time.Second) {
			w.end = latest
		}
	default:
		w.used -= min(-charged.used, w.used)
	}
}
