package memory

import (
	"context"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Take implements [ratelimit.Limiter]. It never waits for anything but other
// calls of Take, and ignores ctx.
func (l *Limiter) Take(_ context.Context, subject string, plan *ratelimit.Plan, cost int64) (d ratelimit.Decision, err error) {
	if plan == nil || plan.Len() == 0 || cost < 1 || subject == "" {
		return plan.Decide(subject, cost)
	}
	d.Plan, d.Cost, d.Time = plan, cost, l.clock.coarse()
	h := l.key.sum(subject)
	t := l.tables[h>>l.shift].Load()
	if i, found := t.find(h); found {
		if slot := t.slot(i); l.admit(slot, h, &d) || l.refuse(t, i, slot, h, &d, false) {
			return d, nil
		}
	}
	if err = plan.Check(subject, cost); err == nil {
		err = l.decide(h, subject, &d)
	}
	if err != nil {
		return ratelimit.Decision{}, err
	}
	return d, nil
}

// admit is the fast path: without the lock it admits a request if all windows of the
// subject are open and have room. It reports whether it did. Otherwise it changed
// nothing.
func (l *Limiter) admit(slot slot, h uint64, d *ratelimit.Decision) bool {
	for {
		m := slot.meter()
		if m.has(checkRecord) || slot.hash() != h {
			return false
		}
		var least, latest int64 // of the applicable quota
		i, quotas := 0, d.Plan.Len()
		layout := l.layouts.get(m.layout()) // of a frozen slot: none
		for k := range layout.len() {
			if !slot.has(k) {
				return false
			}
			w := layout.window(k, slot, m)
			if !w.open(d.Time) {
				return false
			}
			if i == quotas || d.Plan.Quota(i).Window != w.length {
				// A window of another plan. One that holds nothing is over.
				if w.used == 0 || !w.fits(d.Cost) {
					return false
				}
				continue
			}
			limit := d.Plan.Quota(i).Limit
			left := limit - w.used
			if left < d.Cost || limit < w.limit {
				return false
			}
			left -= d.Cost
			if i == 0 || left < least || left == least && w.end > latest {
				d.Applicable, least, latest = i, left, w.end
			}
			d.States[i] = ratelimit.State{Remaining: left, Reset: w.end}
			i++
		}
		if i < quotas {
			return false // a window of the plan has not begun
		}
		if slot.swap(m, m.charged(d.Cost)) {
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

// refuse is the fast path of a flood: without the lock it answers a request that is
// limited or banned where that changes nothing. It reports whether it did. The
// account of h is in the slot with index at, and admit did not admit the request.
//
// If the time in d is not exact, and the request could be admitted within maxLate,
// refuse reads the exact time and decides by that.
func (l *Limiter) refuse(t *table, at uint64, slot slot, h uint64, d *ratelimit.Decision, exact bool) bool {
	m := slot.meter()
	if slot.hash() != h {
		return false
	}
	lastEnd, refusedUntil := l.layouts.get(m.layout()).states(slot, m, d)
	if lastEnd == 0 {
		return false
	}
	var r record
	punishes := d.Plan.Strikes() > 0
	if (punishes || m.has(checkRecord)) && !t.peekRecord(at, h, d.Time, &r) {
		return false // without a record, the request may be a strike
	}
	d.Outcome, d.BanEnds = ratelimit.Limited, r.banEnds(d.Time)
	if d.BanEnds > 0 {
		d.Outcome = ratelimit.Banned
		if d.BanEnds < r.until {
			return false // the clock stepped back, and the ban must be shortened
		}
	}
	d.RetryAfter = time.Duration(max(refusedUntil, d.BanEnds)*int64(time.Second) - d.Time)
	if d.RetryAfter < maxLate && !exact {
		d.Time = l.clock.now()
		return l.refuse(t, at, slot, h, d, true)
	}
	if refusedUntil == 0 {
		d.Settle() // of a ban: no quota refuses the request
	}
	d.StrikesLeft = strikesLeft(d, &r)
	changesNothing := d.Outcome == ratelimit.Banned ||
		refusedUntil > 0 && (!punishes || r.expires >= lastEnd && r.withinGrace(d.Time, windowStart(d), d.Plan.Grace()))
	return changesNothing && slot.meter() == m
}

// states puts what each quota of the plan has left into d. It returns the end of the
// last window to end, and that of the last one that refuses the request, which is
// then the applicable one; 0 if none does. If lastEnd is 0, the lock must be taken,
// since a window must begin first or its limit be lowered.
func (s *sharedLayout) states(slot slot, m meter, d *ratelimit.Decision) (lastEnd, refusedUntil int64) {
	plan, now, i := d.Plan, d.Time, 0
	for k := range s.len() {
		if !slot.has(k) {
			return 0, 0
		}
		w := s.window(k, slot, m)
		if !w.open(now) {
			return 0, 0
		}
		lastEnd = max(lastEnd, w.end)
		if i == plan.Len() || plan.Quota(i).Window != w.length {
			continue // a window of another plan
		}
		limit := plan.Quota(i).Limit
		if d.Cost > limit || limit < w.limit {
			return 0, 0
		}
		left := max(limit-w.used, 0)
		if left < d.Cost && w.end > refusedUntil {
			d.Applicable, refusedUntil = i, w.end
		}
		d.States[i] = ratelimit.State{Remaining: left, Reset: w.end}
		i++
	}
	if i < plan.Len() {
		return 0, 0
	}
	return lastEnd, refusedUntil
}

// windowStart returns when the window of the applicable quota began, in Unix
// seconds.
func windowStart(d *ratelimit.Decision) int64 {
	return d.States[d.Applicable].Reset - int64(d.Plan.Quota(d.Applicable).Window/time.Second)
}

// decide decides, under the lock and by the exact time, whatever the fast paths
// leave open. It fills d.
func (l *Limiter) decide(h uint64, name string, d *ratelimit.Decision) error {
	s := l.lockKey(h)
	defer s.unlock()
	d.Time = s.now
	s.freeze()
	s.account.roll(d.Time, d.Plan)
	r, hasRecord := s.record(d.Time)
	before := r
	r.limitBan(d.Time)
	fits := s.account.states(d)

	d.BanEnds = r.banEnds(d.Time)
	switch {
	case d.BanEnds > 0:
		d.Outcome = ratelimit.Banned
	case fits:
		d.Outcome = ratelimit.Allowed
		s.account.charge(d)
		r.admit()
	default:
		d.Outcome = ratelimit.Limited
		d.Settle()
		s.strike(&r, name, d)
	}
	d.StrikesLeft = strikesLeft(d, &r)
	d.Settle()

	if s.found || d.Outcome == ratelimit.Allowed {
		if err := s.reserve(); err != nil {
			return err
		}
	}
	if r != before || hasRecord && r.empty() {
		// Without room the record is not kept, which makeRoom has counted. The
		// decision stands, but is no strike.
		if s.putRecord(r, 0) != nil {
			d.Struck = false
		}
	}
	if s.found {
		s.write(0)
	}
	s.sweep(d.Time, rollSteps)
	return nil
}

// strike enters a limited request into the record, which may start a ban.
func (s *subject) strike(r *record, name string, d *ratelimit.Decision) {
	penalty := d.Plan.Penalty()
	if penalty.Strikes == 0 {
		return
	}
	r.expires = max(r.expires, s.account.lastEnd())
	d.Struck, d.BanStarted = r.strike(penalty, d.Time, windowStart(d))
	if d.BanStarted {
		d.Outcome, d.BanEnds = ratelimit.Banned, r.until
		s.keepName(name)
	}
}
