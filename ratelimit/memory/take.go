package memory

import (
	"context"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// Take implements [ratelimit.Limiter]. It never waits for anything but other
// calls of Take, and ignores ctx.
func (l *Limiter) Take(_ context.Context, subject string, plan *ratelimit.Plan, cost int64) (d ratelimit.Decision, err error) {
	if plan == nil || engine.Of(plan).Len() == 0 || cost < 1 || subject == "" {
		return engine.Decide(subject, plan, cost)
	}
	d.Plan, d.Cost, d.Time = plan, cost, l.clock.coarse()
	h := l.key.sum(subject)
	t := l.tables[h>>l.shift].Load()
	if i, found := t.find(h); found {
		slot := t.slot(i)
		for exact := false; ; { // exact: d.Time is not late
			admitted, refusedUntil := l.admit(slot, h, &d, nil)
			if admitted {
				return d, nil
			}
			if refusedUntil > 0 && refusedUntil-d.Time < maxLate && !exact {
				if d.Time, exact = l.clock.now(), true; d.Time >= refusedUntil {
					continue
				}
			}
			if l.look(t, slot, h, &d) != refused {
				break
			}
			if exact || d.RetryAfter >= maxLate {
				return d, nil
			}
			d.Time, exact = l.clock.now(), true // by which it may be admitted
			d.Receipt.BanReason = nil
		}
	}
	if _, err = engine.Decide(subject, plan, cost); err == nil {
		err = l.decide(h, subject, &d)
	}
	if err != nil {
		return ratelimit.Decision{}, err
	}
	return d, nil
}

// maxLate is how late the time on the fast path may be, in nanoseconds, without a request
// being refused for it: what ends sooner than that is decided by the exact time.
const maxLate = 1_000_000_000

// admit is the fast path: without the lock it admits a request if all windows of the
// subject are open and have room. It reports whether it did. Otherwise it changed
// nothing; if a smooth quota refuses the request, it also returns until when, in Unix
// nanoseconds. If hold is not nil, the charge is one of several: the slot is held instead,
// and hold gets the meter before.
func (l *Limiter) admit(slot slot, h uint64, d *ratelimit.Decision, hold *member) (admitted bool, refusedUntil int64) {
	for {
		m := slot.meter()
		if m.has(checkRecord) || slot.hash() != h {
			return false, 0
		}
		var least, latest int64 // of the applicable quota
		i, quotas := 0, engine.Of(d.Plan).Len()
		layout := l.layouts.get(m.layout()) // of a frozen slot: none
		if layout.wide != 0 {
			return l.admitSmooth(slot, h, d, hold)
		}
		windows := layout.n
		for k := range windows {
			if !slot.has(k) {
				return false, 0
			}
			w := layout.window(k, slot, m)
			if !w.open(d.Time) {
				if w.isSmooth() {
					return l.admitSmooth(slot, h, d, hold)
				}
				return false, 0
			}
			if i == quotas || engine.Of(d.Plan).Kind(i) != w.length {
				// A window of another plan. One that holds nothing may not have begun.
				if w.used == 0 || !w.fits(d.Cost) {
					return false, 0
				}
				continue
			}
			limit := engine.Of(d.Plan).Limit(i)
			left := limit - w.used
			if left < d.Cost || limit < w.limit || !w.fits(d.Cost) {
				return false, 0
			}
			left -= d.Cost
			if i == 0 || left < least || left == least && w.end > latest {
				d.Applicable, least, latest = i, left, w.end
			}
			d.States[i] = ratelimit.State{Remaining: left, Reset: w.end}
			i++
		}
		if i < quotas {
			return false, 0 // a window of the plan has not begun
		}
		if windows > quotas {
			layout.others(slot, m, d)
		}
		after := m.charged(d.Cost)
		if hold != nil {
			hold.meter, after = m, m.held()
		}
		if slot.swap(m, after) {
			d.Outcome, d.BanEnds, d.RetryAfter = ratelimit.Allowed, 0, 0 // of a look before
			d.StrikesLeft = engine.Of(d.Plan).Strikes()
			return true, 0
		}
		if windows > quotas {
			clear(d.Receipt.Others[:])
		}
	}
}

// others puts the windows of other plans, which the charge d reaches too, into it.
func (l *layout) others(slot slot, m meter, d *ratelimit.Decision) {
	n := 0
	for k := range min(l.n, len(slot)-firstWindow) {
		if w := l.window(k, slot, m); !w.isSmooth() && engine.Of(d.Plan).Find(w.length) < 0 && n < len(d.Receipt.Others) {
			d.Receipt.Others[n] = fixedwindow.Window{Length: uint32(w.length / time.Second), End: uint32(w.end)}
			n++
		}
	}
}

// A verdict is what can be said of a request without the lock.
type verdict uint8

const (
	unclear verdict = iota // nothing: the lock must be taken
	refused                // it is limited or banned, and that changes nothing
	spared                 // nothing refuses it
)

// look is the fast path of a flood: without the lock it fills d with the decision about
// a request of h that admit did not admit, if that changes nothing.
func (l *Limiter) look(t *table, slot slot, h uint64, d *ratelimit.Decision) verdict {
	m := slot.meter()
	if slot.hash() != h {
		return unclear
	}
	layout := l.layouts.get(m.layout())
	lastEnd, refusedUntil := layout.states(slot, m.counted(), d)
	if lastEnd == 0 {
		if lastEnd, refusedUntil = layout.smoothStates(slot, m.counted(), d, 0); lastEnd == 0 {
			return unclear
		}
	}
	var r record
	punishes, v := engine.Of(d.Plan).Strikes() > 0, refused
	d.Outcome, d.BanEnds = ratelimit.Limited, t.peekBan(m, d.Time)
	if d.BanEnds == 0 && (punishes && refusedUntil > 0 || m.has(checkRecord)) {
		if !t.peekRecord(h, d.Time, &r) {
			return unclear // without a record, the request may be a strike
		}
		d.BanEnds = r.banEnds(d.Time)
	}
	switch {
	case d.BanEnds > 0:
		d.Outcome, d.Receipt.BanReason = ratelimit.Banned, r.reason(nil)
		if d.BanEnds < r.until || r.length&ownText != 0 {
			return unclear // the clock stepped back, and the ban must be shortened; or the text is under the lock
		}
	case refusedUntil == 0:
		d.Outcome, v = ratelimit.Spared, spared
	case punishes && !(r.expires >= lastEnd && r.withinGrace(d.Time, windowStart(d), d.Plan.Numbers().Grace)):
		v = unclear // a strike
	}
	d.RetryAfter = time.Duration(max(refusedUntil, d.BanEnds*int64(time.Second)) - d.Time)
	if refusedUntil == 0 {
		engine.Complete(d) // no quota refuses the request
	}
	d.StrikesLeft = strikesLeft(d, &r)
	if slot.meter() != m {
		return unclear
	}
	return v
}

// states puts what each quota of the plan has left into d. It returns the end of the
// last window to end, and until when one refuses the request, in Unix nanoseconds, which is
// then the applicable one; 0 if none does. If lastEnd is 0, the lock must be taken,
// since a window must begin first or its limit be lowered, or there is a smooth quota or a
// wide window.
func (l *layout) states(slot slot, m meter, d *ratelimit.Decision) (lastEnd, refusedUntil int64) {
	plan, now, i := d.Plan, d.Time, 0
	for k := range l.n {
		if !slot.has(k) || l.wide != 0 {
			return 0, 0
		}
		w := l.window(k, slot, m)
		if !w.open(now) {
			return 0, 0
		}
		lastEnd = max(lastEnd, w.end)
		if i == engine.Of(plan).Len() || engine.Of(plan).Kind(i) != w.length {
			continue // a window of another plan
		}
		limit := engine.Of(plan).Limit(i)
		if d.Cost > limit || limit < w.limit && w.used > 0 {
			return 0, 0
		}
		left := max(limit-w.used, 0)
		if left < d.Cost && w.end > refusedUntil {
			d.Applicable, refusedUntil = i, w.end
		}
		d.States[i] = ratelimit.State{Remaining: left, Reset: w.end}
		i++
	}
	if i < engine.Of(plan).Len() {
		return 0, 0
	}
	return lastEnd, refusedUntil * int64(time.Second)
}

// windowStart returns when the window of the applicable quota began, in Unix
// seconds.
func windowStart(d *ratelimit.Decision) int64 {
	return engine.Of(d.Plan).WindowStart(d.Applicable, d.States[d.Applicable].Reset)
}
