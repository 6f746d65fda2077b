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
		var least, latest int64          // of the applicable quota
		i, quotas := 0, d.Plan.Len()
		for k := range shape.len() {
			w, length := slot.window(k), shape.length(k)
			used := w.used(m.count())
			if !w.open(d.Time, length) {
				return false
			}
			if i == quotas || d.Plan.Quota(i).Window != length {
				// A window of another plan. One that holds nothing is over.
				if used == 0 || d.Cost > ratelimit.MaxLimit-used {
					return false
				}
				continue
			}
			limit := d.Plan.Quota(i).Limit
			left := limit - used
			if left < d.Cost || limit < shape.limit(k) {
				return false
			}
			left -= d.Cost
			end := w.end()
			if i == 0 || left < least || left == least && end > latest {
				d.Applicable, least, latest = i, left, end
			}
			d.States[i] = ratelimit.State{Remaining: left, Reset: end}
			i++
		}
		if i < quotas {
			return false
		}
		if slot.swap(m, m+meter(d.Cost)*countUnit|dirty) {
			d.Outcome = ratelimit.Allowed
			if d.StrikesLeft = d.Plan.Strikes(); d.StrikesLeft == 0 {
				d.StrikesLeft = -1
			}
			return true
		}
	}
}

// maxLate is how late the time on the fast path may be without a request being
// refused for it: what ends sooner than that is decided by the exact time.
const maxLate = time.Second

// refuse is the fast path of a flood: it answers a request that is limited or
// banned where that changes nothing, and takes no lock. It reports whether it
// did. The account of h is in the slot with index at, and charge does not admit the request.
//
// If the time in d is not exact, and the request could be admitted within maxLate,
// refuse reads the exact time and decides by that.
func (l *Limiter) refuse(t *table, at uint64, slot slot, h uint64, d *ratelimit.Decision, exact bool) bool {
	m := slot.meter()
	if slot.hash() != h {
		return false
	}
	last, until := l.shapes.get(m.shape()).states(slot, m.count(), d)
	if last == 0 {
		return false
	}
	var r record
	punishes := d.Plan.Strikes() > 0
	if (punishes || m&marked != 0) && !t.glance(at, h, m, d.Time, &r) {
		return false
	}
	d.Outcome, d.BanEnds = ratelimit.Limited, r.banEnds(d.Time)
	if d.BanEnds > 0 {
		d.Outcome = ratelimit.Banned
	}
	if d.BanEnds > 0 && d.BanEnds < r.until {
		return false // the clock stepped back, and the ban is to be cut
	}
	d.RetryAfter = time.Duration(max(until, d.BanEnds)*int64(time.Second) - d.Time)
	if d.RetryAfter < maxLate && !exact {
		d.Time = l.clock.now()
		return l.refuse(t, at, slot, h, d, true)
	}
	d.StrikesLeft = strikesLeft(d, &r)
	changesNothing := d.Outcome == ratelimit.Banned ||
		until > 0 && (!punishes || r.expires >= last && r.spares(d.Time, windowStart(d), d.Plan.Grace()))
	return changesNothing && slot.meter() == m
}

// states puts what each quota of the plan has left into d, and the applicable one
// of a request that is refused, as [ratelimit.Decision.Settle] would. It returns the
// end of the last window to end, and that of the last one that refuses the request,
// which is 0 if none does. Last is 0 if only the lock can tell, since a window must
// be opened first or its limit lowered.
func (c *cell) states(slot slot, count uint32, d *ratelimit.Decision) (last, until int64) {
	plan, i := d.Plan, 0
	var least, latest int64 // of the quota with the least left
	for k := range c.len() {
		w, length := slot.window(k), c.length(k)
		if !w.open(d.Time, length) {
			return 0, 0
		}
		end := w.end()
		last = max(last, end)
		if i == plan.Len() || plan.Quota(i).Window != length {
			continue
		}
		limit := plan.Quota(i).Limit
		if d.Cost > limit || limit < c.limit(k) {
			return 0, 0
		}
		left := max(limit-w.used(count), 0)
		switch {
		case left < d.Cost && end > until:
			d.Applicable, until = i, end
		case until == 0 && (i == 0 || left < least || left == least && end > latest):
			d.Applicable, least, latest = i, left, end
		}
		d.States[i] = ratelimit.State{Remaining: left, Reset: end}
		i++
	}
	if i < plan.Len() {
		return 0, 0
	}
	return last, until
}

// glance fills r, which is empty, with the record of h, whose account is in slot
// at and has the meter m, without the lock. It reports whether the record is
// whole and has not expired. A subject may have none, unless its account is
// marked.
func (t *table) glance(at, h uint64, m meter, now int64, r *record) bool {
	h = recordHash(h)
	i, found := t.findFrom(t.next(at), h) // mostly it came after the account
	if !found {
		i, found = t.find(h)
	}
	if !found {
		return m&marked == 0
	}
	s := t.slot(i)
	before := s.meter()
	if s.hash() != h || before.shape() != int(recordShape) {
		return false
	}
	r.read(s, now)
	return s.meter() == before && r.expires > 0
}

// strikesLeft returns what a decision says of strikes.
func strikesLeft(d *ratelimit.Decision, r *record) int {
	allowed := d.Plan.Strikes()
	switch {
	case allowed == 0:
		return -1
	case d.Outcome == ratelimit.Banned:
		return 0
	case r.strikes == 0:
		return allowed
	}
	return d.Plan.Penalty().StrikesLeft(r.strikes, r.since, d.Time/int64(time.Second))
}

// windowStart returns when the window of the applicable quota began, in Unix
// seconds.
func windowStart(d *ratelimit.Decision) int64 {
	return d.States[d.Applicable].Reset - int64(d.Plan.Quota(d.Applicable).Window/time.Second)
}
