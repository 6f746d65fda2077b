package memory

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// charge is the fast path: it admits a request of a subject whose windows are
// open and have room, and takes no lock. It reports whether it did. Otherwise
// it changed nothing.
func (l *Limiter) charge(slot slot, h uint64, d *ratelimit.Decision) bool {
	for {
		m := slot.meter()
		if m&marked != 0 || slot.hash() != h {
			return false
		}
		shape := l.shapes.get(m.shape()) // of a frozen slot: none
		if shape.n != d.Plan.Len() {
			return false
		}
		charged := m&^(heavyLong|heavyShort) + meter(d.Cost)*countUnit | dirty
		heavy := heavyShort
		var least, latest int64 // of the applicable quota
		for k := range shape.n {
			w, q := slot.window(k), d.Plan.Quota(k)
			left := q.Limit - w.used(m.count()) - d.Cost
			if left < 0 || q.Window != shape.lengths[k] || !w.open(d.Time, q.Window) {
				return false
			}
			if k == shape.n-1 {
				heavy = heavyLong
			}
			if left*2 <= q.Limit {
				charged |= heavy
			}
			end := w.end()
			if k == 0 || left < least || left == least && end > latest {
				d.Applicable, least, latest = k, left, end
			}
			d.States[k] = ratelimit.State{Remaining: left, Reset: end}
		}
		if slot.swap(m, charged) {
			d.Outcome = ratelimit.Allowed
			d.StrikesLeft = strikesLeft(d, 0)
			return true
		}
	}
}

// maxLate is how late the time on the fast path may be without anybody being
// refused for it: what ends sooner than that is left to decide.
const maxLate = time.Second

// refuse is the fast path of a flood: it answers a request that is limited or
// banned where that changes nothing, and takes no lock. It reports whether it
// did. The request is not one that charge admits.
func (l *Limiter) refuse(t *table, slot slot, h uint64, d *ratelimit.Decision) bool {
	m := slot.meter()
	shape := l.shapes.get(m.shape())
	if slot.hash() != h || shape.n != d.Plan.Len() {
		return false
	}
	fits := true
	for k := range shape.n {
		w, q := slot.window(k), d.Plan.Quota(k)
		if q.Window != shape.lengths[k] || !w.open(d.Time, q.Window) || d.Cost > q.Limit {
			return false
		}
		left := max(q.Limit-w.used(m.count()), 0)
		d.States[k] = ratelimit.State{Remaining: left, Reset: w.end()}
		fits = fits && left >= d.Cost
	}
	endured := d.Plan.Penalty().Strikes
	var r record
	if (endured > 0 || m&marked != 0) && !t.glance(h, d.Time, &r) {
		return false
	}
	d.Outcome, d.BanEnds = ratelimit.Limited, r.banEnds(d.Time)
	if d.BanEnds > 0 {
		d.Outcome = ratelimit.Banned
	}
	if d.Settle(); d.RetryAfter < maxLate {
		return false
	}
	d.StrikesLeft = strikesLeft(d, r.strikes)
	changesNothing := d.Outcome == ratelimit.Banned ||
		!fits && (endured == 0 || r.spares(d.Time, windowStart(d), d.Plan.Penalty().Grace))
	return changesNothing && slot.meter() == m
}

// glance fills r, which is empty, with the record of h, without the lock. It
// reports whether nobody changed the record meanwhile. A subject may have none.
func (t *table) glance(h uint64, now int64, r *record) (whole bool) {
	h = recordHash(h)
	i, found := t.find(h)
	if !found {
		return true
	}
	s := t.slot(i)
	m := s.meter()
	if s.hash() != h || m.shape() != int(recordShape) {
		return false
	}
	r.read(s, now)
	return s.meter() == m
}

// strikesLeft returns what a decision says of strikes.
func strikesLeft(d *ratelimit.Decision, strikes int) int {
	allowed := d.Plan.Penalty().Strikes
	switch {
	case allowed == 0:
		return -1
	case d.Outcome == ratelimit.Banned:
		return 0
	}
	return max(allowed-strikes, 0)
}

// windowStart returns when the window of the applicable quota began, in Unix
// seconds.
func windowStart(d *ratelimit.Decision) int64 {
	return d.States[d.Applicable].Reset - int64(d.Plan.Quota(d.Applicable).Window/time.Second)
}
