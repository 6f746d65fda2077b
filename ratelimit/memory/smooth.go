package memory

import (
	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// The state of a smooth quota is the time at which its bucket is full, which full and
// setFull read and write. It is kept where another window has its end and usage: its end is
// that time, rounded up, and used is by what fraction; both are 0 if the bucket is full. No time
// is in such a window: the fast path for fixed windows leaves such accounts to that for buckets.
// Its limit is what fillUnits returns.
//
// A smooth quota is charged under plans that have it, and not under others, which do not
// say how fast its units come back.

// The time in which a bucket fills is kept in 128ths of a second. A year has less than 2³² of them.
const (
	fillUnitsInSecond           = 1 << 7
	fillUnit          gcra.Span = 1 << 32 / fillUnitsInSecond
)

// fillUnits returns in how many fillUnits a bucket fills, rounded down as limits are.
func fillUnits(b gcra.Bucket) int64 {
	return roundLimit(max(int64(b.Fill()/fillUnit), 1))
}

func (w *window) isSmooth() bool { return w.kind.IsSmooth() }

// rounded is by how much the end of a smooth quota was rounded up.
func (w *window) rounded() gcra.Fraction { return gcra.Fraction(w.used) }

func (w *window) full() gcra.Time { return gcra.Of(int64(w.end), w.rounded()) }

func (w *window) setFull(t gcra.Time, now instant) {
	w.end, w.used = 0, 0
	if t > gcra.At(int64(now)) {
		end, rounded := t.RoundUp()
		w.end, w.used = unixSecond(end), int64(rounded)
	}
}

// keptUntil returns the time until which half of the limit is used, which is over if less is.
func (w *window) keptUntil() unixSecond {
	switch {
	case w.isSmooth():
		return w.end - unixSecond(w.limit/2/fillUnitsInSecond) // half of the time in which the bucket fills
	case w.used*2 >= w.limit:
		return w.end
	}
	return 0
}

// share returns how much of its limit a window has used, or of its burst a bucket; 0 once it is
// over.
func (w *window) share(now instant) float64 {
	switch {
	case !w.inUse(now):
		return 0
	case w.isSmooth():
		return float64(w.end.since(now.second())) * fillUnitsInSecond / float64(w.limit)
	}
	return float64(w.used) / float64(w.limit)
}

// latestEnd returns the latest end that a window may have.
func (w *window) latestEnd(now instant) unixSecond {
	if w.isSmooth() { // one window, and two seconds that are rounded up
		return now.second().add(wholeSeconds(-w.kind.Seconds()) + 2)
	}
	return unixSecond(fixedwindow.LatestEnd(int64(now), w.kind.Length()))
}

// rollSmooth brings the window of the plan's i-th quota, which is smooth, to the time now.
func (a *account) rollSmooth(now instant, plan *ratelimit.Plan, i int) {
	b := plan.Numbers().Bucket(i)
	w := a.openBucket(plan, i, b)
	w.setFull(b.Limited(w.full(), gcra.At(int64(now))), now)
}

// openBucket returns the window of the plan's i-th quota, which is smooth, limited by the
// quota.
func (a *account) openBucket(plan *ratelimit.Plan, i int, b gcra.Bucket) *window {
	w := a.window(kindOf(plan, i))
	if w == nil {
		w = a.openWindow(plan, window{kind: kindOf(plan, i), limit: fillUnits(b)})
	}
	w.limit = min(w.limit, fillUnits(b))
	return w
}

// smoothState puts what is left of the plan's i-th quota, which is smooth, into d.
func (a *account) smoothState(d *ratelimit.Decision, i int) {
	w, b, now := a.window(kindOf(d.Plan, i)), d.Plan.Numbers().Bucket(i), gcra.At(d.Time)
	full := max(w.full(), now)
	d.States[i].Remaining = b.Left(full, now)
	d.States[i].Reset, d.Receipt.Rounded[i] = full.RoundUp()
}

// chargeSmooth charges the plan's i-th quota, which is smooth and has room.
func (a *account) chargeSmooth(d *ratelimit.Decision, i int) {
	w, b := a.window(kindOf(d.Plan, i)), d.Plan.Numbers().Bucket(i)
	w.setFull(b.Charged(max(w.full(), gcra.At(d.Time)), d.Cost), timeOf(d))
	d.States[i].Reset, d.Receipt.Rounded[i] = int64(w.end), w.rounded()
}

// adjustSmooth makes the charge d cost so many units more of its i-th quota, or less if they are
// negative.
func (s *subject) adjustSmooth(d *ratelimit.Decision, i int, units int64) {
	b, now := d.Plan.Numbers().Bucket(i), gcra.At(int64(s.now))
	switch {
	case units > 0:
		w := s.account.openBucket(d.Plan, i, b)
		w.setFull(b.Limited(b.Charged(b.Limited(w.full(), now), units), now), s.now)
	case s.account.window(kindOf(d.Plan, i)) != nil:
		s.giveBackSmooth(d, i, -units)
	}
}

// giveBackSmooth gives units of the charge d back to its i-th quota, which is smooth and whose
// bucket is not full. Without room to keep that return, it gives back nothing.
func (s *subject) giveBackSmooth(d *ratelimit.Decision, i int, units int64) {
	b, now := d.Plan.Numbers().Bucket(i), gcra.At(int64(s.now))
	w := s.account.openBucket(d.Plan, i, b)
	cost := min(d.Cost, fixedwindow.MaxUnits)
	span := b.Span(cost) - b.Span(cost-units)
	charge := gcra.ChargeOf(d.Time, d.States[i].Reset, d.Receipt.Rounded[i])
	key := bucketKey{s.hash, kindOf(d.Plan, i)}
	full, returns := b.GiveBack(w.full(), now, charge, span, s.returns[key])
	if len(returns) > 0 && s.keepReturns(key, returns) {
		w.setFull(full, s.now)
	}
}

// A bucketKey names a smooth quota of a subject, of which a segment has the returns: beside the
// slots, since they matter for longer. They are not saved: they are about charges of this process.
type bucketKey struct {
	account uint64 // its hash
	kind    fixedwindow.Kind
}

// keepReturns reports whether there is room to keep the returns of a bucket. It drops some of those
// that do not matter any more.
func (s *subject) keepReturns(key bucketKey, returns []gcra.Return) bool {
	checked := 0
	for old, r := range s.returns { // begins anywhere
		if checked++; instant(r[len(r)-1].At.Nanos()).add(2*old.kind.Length()+keepExpired) <= s.now {
			delete(s.returns, old)
		}
		if checked == insertSteps {
			break
		}
	}
	if _, found := s.returns[key]; !found && len(s.returns) >= subjectsInSegment {
		return false
	}
	s.returns[key] = returns
	return true
}

// admitSmooth is admit for an account with a smooth quota or a wide window. To charge a bucket
// changes its word beside the meter, so that it is pending meanwhile, as in a group. If
// a quota refuses the request, it also returns from when on there is room.
func (l *Limiter) admitSmooth(slot slot, h uint64, d *ratelimit.Decision, joint *member) (admitted bool, roomAt instant) {
	for {
		m := slot.meter()
		if slot.hash() != h || m.conduct() >= checkConduct {
			return false, 0
		}
		layout := l.layouts.get(m.layout()) // of a frozen slot: none
		lastEnd, roomAt := layout.smoothStates(slot, m, d, d.Cost)
		if lastEnd == 0 || roomAt > 0 {
			return false, roomAt
		}
		if !slot.swap(m, m.withPending()) {
			continue
		}
		if joint != nil {
			joint.meter, joint.smooth = m, true
		} else {
			slot.setMeter(layout.endCharge(slot, m, d))
		}
		d.Outcome, d.BanEnds, d.RetryAfter = ratelimit.Allowed, 0, 0 // refuse may have tried with an earlier time
		d.StrikesLeft = engine.Of(d.Plan).Strikes()
		engine.Complete(d)
		return true, 0
	}
}

// endCharge ends a pending charge of a slot with buckets that had the meter m, and returns the
// meter that the caller puts back. It puts the buckets of d, which is allowed, into the slot, and the windows of
// other plans beside them into d.
func (l *layout) endCharge(slot slot, m meter, d *ratelimit.Decision) meter {
	if l.n > engine.Of(d.Plan).Len() {
		l.others(slot, m, d)
	}
	for k := range l.n {
		if !l.kinds[k].IsSmooth() {
			break // smooth quotas come first
		}
		if i := quotaOf(d.Plan, l.kinds[k]); i >= 0 {
			slot.setWindow(k, newBucketWord(unixSecond(d.States[i].Reset), d.Receipt.Rounded[i]))
		}
	}
	return m.charged(d.Cost).after(m)
}

// smoothStates is states for any layout. If units are given, there must be room for them, and
// d says what is left once they are charged.
func (l *layout) smoothStates(slot slot, m meter, d *ratelimit.Decision, units int64) (lastEnd unixSecond, roomAt instant) {
	var until gcra.Time
	quotas := 0
	for k := range l.n {
		if !slot.has(k) {
			return 0, 0
		}
		w := l.anyWindow(k, slot, m)
		if !w.isSmooth() && units > maxNarrow-slot.window(k).used(m.count()) {
			return 0, 0
		}
		i := quotaOf(d.Plan, w.kind)
		if i < 0 { // a window of another plan
			if !w.stays(d) {
				return 0, 0
			}
			lastEnd = max(lastEnd, w.end)
			continue
		}
		roomAt, ok := w.state(d, i, units)
		if !ok {
			return 0, 0
		}
		if roomAt > until || roomAt > 0 && roomAt == until && i < d.Applicable {
			d.Applicable, until = i, roomAt
		}
		lastEnd = max(lastEnd, unixSecond(d.States[i].Reset))
		quotas++
	}
	if quotas < engine.Of(d.Plan).Len() {
		return 0, 0
	}
	return lastEnd, instant(until.Nanos())
}

// stays reports whether a window of another plan is open and in use, and has room.
func (w *window) stays(d *ratelimit.Decision) bool {
	if w.isSmooth() {
		return w.inUse(timeOf(d)) // it is not charged
	}
	return w.open(timeOf(d)) && w.used > 0 && d.Cost <= fixedwindow.MaxUnits-w.used
}

// state puts what is left of the plan's i-th quota after so many units are charged into d.
// It returns when there is room for the request, 0 if there is now. It is not ok if the
// lock must be taken.
func (w *window) state(d *ratelimit.Decision, i int, units int64) (roomAt gcra.Time, ok bool) {
	if w.isSmooth() {
		return w.smoothState(d, i, units)
	}
	limit := engine.Of(d.Plan).Limit(i)
	if !w.open(timeOf(d)) || d.Cost > limit || limit < w.limit && (w.used > 0 || units > 0) {
		return 0, false
	}
	left := max(limit-w.used, 0)
	d.States[i] = ratelimit.State{Remaining: left - units, Reset: int64(w.end)}
	if left < d.Cost {
		roomAt = gcra.Of(int64(w.end), 0)
	}
	return roomAt, true
}

// smoothState is state for a smooth quota. The lock writes a bucket that is full
// again, unless it is charged immediately, so that it stays full if the clock steps back.
func (w *window) smoothState(d *ratelimit.Decision, i int, units int64) (roomAt gcra.Time, ok bool) {
	b, now := d.Plan.Numbers().Bucket(i), gcra.At(d.Time)
	full := max(w.full(), now)
	if full == now && w.end > 0 && units == 0 ||
		b.Limited(full, now) < full || d.Cost > b.Burst() || fillUnits(b) < w.limit {
		return 0, false
	}
	if fits := b.Fits(full, d.Cost); fits > now {
		if roomAt = fits; units > 0 {
			return roomAt, true
		}
	}
	d.States[i].Remaining = b.Left(full, now) - units
	d.States[i].Reset, d.Receipt.Rounded[i] = b.Charged(full, units).RoundUp()
	return roomAt, true
}
