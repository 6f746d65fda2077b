package memory

import (
	"context"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// Take implements [ratelimit.Limiter]. It waits for nothing but short locks, and ignores ctx.
func (l *Limiter) Take(_ context.Context, subject string, plan *ratelimit.Plan, cost int64) (d ratelimit.Decision, err error) {
	if plan == nil || engine.Of(plan).Len() == 0 || cost < 1 || subject == "" {
		return engine.Decide(subject, plan, cost)
	}
	d.Plan, d.Cost, d.Time = plan, cost, int64(l.clock.coarse())
	h := l.key.sum(subject)
	t := l.tables[h>>l.shift].Load()
	if i, found := t.find(h); found {
		slot := t.slot(i)
		admitted, roomAt := l.admit(slot, h, &d, nil)
		if admitted || l.begin(slot, h, &d) || l.refuse(t, slot, h, &d, roomAt) {
			return d, nil
		}
	}
	if err = plan.Check(subject, cost); err == nil && !l.refuseBanned(t, h, &d) { // the cost may be over a limit
		err = l.decide(h, subject, &d)
	}
	if err != nil {
		return ratelimit.Decision{}, err
	}
	return d, nil
}

// maxLate is how late the time on the fast path may be without a request being refused for
// it: what ends sooner than that is decided by the exact time.
const maxLate = time.Second

// refuse decides without the lock about a request that admit did not admit. If what refuses
// it ends soon, the exact time decides, and may still admit it. It reports whether d is the
// decision. roomAt is from when on a smooth quota has room; 0: not known.
func (l *Limiter) refuse(t *table, slot slot, h uint64, d *ratelimit.Decision, roomAt instant) (decided bool) {
	if roomAt == 0 || roomAt.since(timeOf(d)) >= maxLate {
		if l.inspect(t, slot, h, d) != refused {
			return false
		}
		if d.RetryAfter >= maxLate {
			return true
		}
		roomAt = timeOf(d).add(d.RetryAfter)
	}
	d.Time, d.Receipt.BanReason = int64(l.clock.now()), nil
	if timeOf(d) >= roomAt {
		if admitted, _ := l.admit(slot, h, d, nil); admitted {
			return true
		}
	}
	return l.inspect(t, slot, h, d) == refused
}

// refuseBanned is refuse for a banned subject without an account. If the conduct still stands after
// the search for an account, and no slot has moved, there was none at an instant meanwhile.
func (l *Limiter) refuseBanned(t *table, h uint64, d *ratelimit.Decision) (decided bool) {
	moves := t.moves.Load()
	i, _ := t.find(conductHash(h))
	slot := t.slot(i)
	m := slot.meter()
	if slot.hash() != conductHash(h) || !m.isConduct() {
		return false
	}
	var a account
	var c conduct
	now := l.clock.now()
	c.read(slot, now)
	banEnds := c.banEnds(now)
	if banEnds == 0 || c.needsLock(banEnds) {
		return false
	}
	d.Time, d.Outcome, d.BanEnds, d.Receipt.BanReason = int64(now), ratelimit.Banned, int64(banEnds), c.reason(nil)
	d.StrikesLeft = strikesLeft(d, &c)
	a.roll(now, d.Plan)
	a.states(d)
	engine.Complete(d)
	_, found := t.find(h)
	return !found && slot.meter() == m && t.moves.Load() == moves
}

// admit is the fast path: without the lock it admits a request if all windows of the
// subject are open and have room. It reports whether it did. Otherwise it changed
// nothing; if a smooth quota refuses the request, it also returns from when on that has
// room. If joint is not nil, the charge is one of several: it is left pending, and joint gets
// the meter before.
func (l *Limiter) admit(slot slot, h uint64, d *ratelimit.Decision, joint *member) (admitted bool, roomAt instant) {
	for {
		m := slot.meter()
		if m.conduct() >= checkConduct || slot.hash() != h {
			return false, 0
		}
		layout := l.layouts.get(m.layout()) // of a frozen slot: none
		if !layout.isPlain() {
			return l.admitSmooth(slot, h, d, joint)
		}
		if !layout.hasRoom(slot, m, d) {
			return false, 0
		}
		hasOthers := layout.n > engine.Of(d.Plan).Len()
		if hasOthers {
			layout.others(slot, m, d)
		}
		after := m.charged(d.Cost)
		if joint != nil {
			joint.meter, after = m, m.withPending()
		}
		if slot.swap(m, after) {
			d.Outcome, d.BanEnds, d.RetryAfter = ratelimit.Allowed, 0, 0 // refuse may have tried with an earlier time
			d.StrikesLeft = engine.Of(d.Plan).Strikes()
			return true, 0
		}
		if hasOthers {
			clear(d.Receipt.Others[:])
		}
	}
}

// hasRoom reports whether every window of a slot with a plain layout is open and has room
// for the request. It puts into d what the quotas of the plan have left once it is charged.
func (l *layout) hasRoom(slot slot, m meter, d *ratelimit.Decision) bool {
	var least int64 // of the applicable quota, and its end
	var latest unixSecond
	plan, i := engine.Of(d.Plan), 0
	for k := range l.n {
		if !slot.has(k) {
			return false
		}
		w := l.window(k, slot, m)
		if !w.open(timeOf(d)) || !w.fits(d.Cost) {
			return false
		}
		if i == plan.Len() || kindOf(d.Plan, i) != w.kind { // a window of another plan
			if w.used == 0 {
				return false // it may not have begun, and only the lock begins windows
			}
			continue
		}
		limit := plan.Limit(i)
		left := limit - w.used - d.Cost
		if left < 0 || limit < w.limit { // or it has not begun: its limit is notBegun
			return false
		}
		if i == 0 || left < least || left == least && w.end > latest {
			d.Applicable, least, latest = i, left, w.end
		}
		d.States[i] = ratelimit.State{Remaining: left, Reset: int64(w.end)}
		i++
	}
	return i == plan.Len() // otherwise the slot lacks a window of the plan
}

// begin is admit for the first request of a window: without the lock it begins the windows of
// the plan that are over. It leaves to the lock every other plan than that of the account, a
// subject with conduct, and one request of 16, for which the lock sweeps.
func (l *Limiter) begin(slot slot, h uint64, d *ratelimit.Decision) (admitted bool) {
	m := slot.meter()
	layout := l.layouts.get(m.layout()) // of a frozen slot: none
	plan := engine.Of(d.Plan)
	if slot.hash() != h || m.conduct() != noConduct || m.version()%rollSteps == 0 || layout.n != plan.Len() || !layout.isPlain() {
		return false
	}
	var words [engine.MaxQuotas]windowWord
	for i := range layout.n {
		if !slot.has(i) || kindOf(d.Plan, i) != layout.kinds[i] {
			return false
		}
		w, limit := layout.window(i, slot, m), plan.Limit(i)
		switch {
		case w.end.instant() <= timeOf(d) && w.limit == measureOf(d.Plan, i):
			w.used, w.end = 0, unixSecond(plan.WindowEnd(i, d.Time))
		case limit < w.limit || !w.open(timeOf(d)):
			return false
		}
		left := limit - w.used - d.Cost
		if left < 0 || !w.fits(d.Cost) {
			return false
		}
		d.States[i] = ratelimit.State{Remaining: left, Reset: int64(w.end)}
		words[i] = newWindowWord(m.count()-uint32(w.used), w.end)
	}
	if !slot.swap(m, m.withPending()) {
		return false
	}
	for i := range layout.n {
		slot.setWindow(i, words[i])
	}
	slot.setMeter(m.charged(d.Cost).after(m))
	d.Outcome, d.StrikesLeft = ratelimit.Allowed, plan.Strikes()
	engine.Complete(d)
	return true
}

// others puts the windows of other plans, which the charge d reaches too, into it.
func (l *layout) others(slot slot, m meter, d *ratelimit.Decision) {
	n := 0
	for k := range min(l.n, len(slot)-firstWindow) {
		if w := l.window(k, slot, m); !w.isSmooth() && quotaOf(d.Plan, w.kind) < 0 && n < len(d.Receipt.Others) {
			d.Receipt.Others[n] = w.receipt()
			n++
		}
	}
}

// A verdict is what can be said of a request without the lock.
type verdict uint8

const (
	unclear verdict = iota // nothing: the lock must be taken
	refused                // it is limited or banned, and that changes nothing
	fits                   // nothing refuses it
)

// inspect is the fast path of a flood: without the lock it fills d with the decision about
// a request of h that admit did not admit, if that changes nothing.
func (l *Limiter) inspect(t *table, slot slot, h uint64, d *ratelimit.Decision) verdict {
	m := slot.meter()
	if slot.hash() != h {
		return unclear
	}
	lastEnd, roomAt := l.layouts.get(m.layout()).states(slot, m.withCount(), d)
	if lastEnd == 0 {
		return unclear
	}
	var c conduct
	mayStrike := roomAt > 0 && engine.Of(d.Plan).Strikes() > 0
	now, banEnds := timeOf(d), t.peekBan(m, timeOf(d))
	if banEnds == 0 && (mayStrike || m.conduct() >= checkConduct) {
		if !t.peekConduct(h, now, &c) {
			return unclear // without conduct, the request may be a strike
		}
		banEnds = c.banEnds(now)
	}
	v := refused
	d.Outcome, d.BanEnds = ratelimit.Limited, int64(banEnds)
	switch {
	case banEnds > 0:
		if c.needsLock(banEnds) {
			return unclear
		}
		d.Outcome, d.Receipt.BanReason = ratelimit.Banned, c.reason(nil)
	case roomAt == 0:
		d.Outcome, v = ratelimit.Skipped, fits
	case mayStrike && !c.excuses(d, lastEnd):
		return unclear // a strike
	}
	d.RetryAfter = max(roomAt, banEnds.instant()).since(now)
	if roomAt == 0 {
		engine.Complete(d) // no quota refuses the request
	}
	d.StrikesLeft = strikesLeft(d, &c)
	if slot.meter() != m {
		return unclear
	}
	return v
}

// states puts what each quota of the plan has left into d. It returns the end of the
// last window to end, and from when on there is room for the request if a quota refuses it,
// which is then the applicable one; 0 if none does. If lastEnd is 0, the lock must be taken,
// since a window must begin first or its limit be lowered.
//
// For a plain layout it is a copy of smoothStates without a charge: a denied request takes
// 118 ns in place of 131.
func (l *layout) states(slot slot, m meter, d *ratelimit.Decision) (lastEnd unixSecond, roomAt instant) {
	if !l.isPlain() {
		return l.smoothStates(slot, m, d, 0)
	}
	var refusedUntil unixSecond
	plan, now, i := engine.Of(d.Plan), timeOf(d), 0
	for k := range l.n {
		if !slot.has(k) {
			return 0, 0
		}
		w := l.window(k, slot, m)
		if !w.open(now) {
			return 0, 0
		}
		lastEnd = max(lastEnd, w.end)
		if i == plan.Len() || kindOf(d.Plan, i) != w.kind {
			continue // a window of another plan
		}
		limit := plan.Limit(i)
		if d.Cost > limit || limit < w.limit && w.used > 0 {
			return 0, 0
		}
		left := max(limit-w.used, 0)
		if left < d.Cost && w.end > refusedUntil {
			d.Applicable, refusedUntil = i, w.end
		}
		d.States[i] = ratelimit.State{Remaining: left, Reset: int64(w.end)}
		i++
	}
	if i < plan.Len() {
		return 0, 0
	}
	return lastEnd, refusedUntil.instant()
}

// windowStart returns when the window of the applicable quota began.
func windowStart(d *ratelimit.Decision) unixSecond {
	return unixSecond(engine.Of(d.Plan).WindowStart(d.Applicable, d.States[d.Applicable].Reset))
}
