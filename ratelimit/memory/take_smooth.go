package memory

import (
	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// takeSmooth is admitSmooth for a request about one subject. If a quota refuses it for so
// short a time that the exact time may admit it, d.Time becomes the exact time.
func (l *Limiter) takeSmooth(slot slot, h uint64, d *ratelimit.Decision) (admitted, exact bool) {
	admitted, refusedUntil := l.admitSmooth(slot, h, d, nil)
	if wait := refusedUntil - d.Time; wait <= 0 || wait >= int64(maxLate) {
		return admitted, false
	}
	if d.Time = l.clock.now(); d.Time >= refusedUntil {
		admitted, _ = l.admitSmooth(slot, h, d, nil)
	}
	return admitted, true
}

// admitSmooth is admit for an account with a smooth quota. To charge one changes the word of
// its bucket beside the meter, so that the slot is held meanwhile, as by a group. If
// a quota refuses the request, it also returns until when, in Unix nanoseconds.
func (l *Limiter) admitSmooth(slot slot, h uint64, d *ratelimit.Decision, hold *meter) (admitted bool, refusedUntil int64) {
	for {
		m := slot.meter()
		if slot.hash() != h || m.has(checkRecord) {
			return false, 0
		}
		layout := l.layouts.get(m.layout()) // of a frozen slot: none
		lastEnd, until := layout.smoothStates(slot, m, d, d.Cost)
		if lastEnd == 0 || until > 0 {
			return false, until
		}
		if !slot.swap(m, m.held()) {
			continue
		}
		if hold != nil {
			*hold = m
		} else {
			slot.setMeter(layout.charge(slot, m, d))
		}
		d.Outcome, d.BanEnds = ratelimit.Allowed, 0 // of a ban that ended since look
		if d.StrikesLeft = of(d.Plan).Strikes(); d.StrikesLeft == 0 {
			d.StrikesLeft = -1
		}
		engine.Complete(d)
		return true, 0
	}
}

// charge puts the buckets of d, which is allowed, into a slot that is held and had the
// meter m, and the windows of other plans into d. It returns the meter with which the
// charge ends.
func (s *sharedLayout) charge(slot slot, m meter, d *ratelimit.Decision) meter {
	if s.len() > of(d.Plan).Len() {
		s.others(slot, m, d)
	}
	for k := range s.len() {
		length := s.length(k)
		if length > 0 {
			break // smooth quotas come first
		}
		if i := quotaOf(d.Plan, length); i >= 0 {
			slot.setWord(k, newWindowWord(d.Receipt.Rounded[i], d.States[i].Reset))
		}
	}
	return m.charged(d.Cost).after(m)
}

// smoothStates is states for an account with a smooth quota. If units are given, there must
// be room for them, and d says what is left once they are charged.
func (s *sharedLayout) smoothStates(slot slot, m meter, d *ratelimit.Decision, units int64) (lastEnd, refusedUntil int64) {
	var until gcra.Time
	quotas := 0
	for k := range s.len() {
		if !slot.has(k) {
			return 0, 0
		}
		w := s.anyWindow(k, slot, m)
		i := quotaOf(d.Plan, w.length)
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
		lastEnd = max(lastEnd, d.States[i].Reset)
		quotas++
	}
	if quotas < of(d.Plan).Len() {
		return 0, 0
	}
	return lastEnd, until.Nanos()
}

// stays reports whether a window of another plan is open and in use, and has room.
func (w *window) stays(d *ratelimit.Decision) bool {
	if w.isSmooth() {
		return w.inUse(d.Time) // it is not charged
	}
	return w.open(d.Time) && w.used > 0 && w.fits(d.Cost)
}

// state puts what is left of the plan's i-th quota after so many units are charged into d.
// It returns when there is room for the request, 0 if there is now. It is not ok if the
// lock must be taken.
func (w *window) state(d *ratelimit.Decision, i int, units int64) (roomAt gcra.Time, ok bool) {
	if w.isSmooth() {
		return w.smoothState(d, i, units)
	}
	limit := of(d.Plan).Limit(i)
	if !w.open(d.Time) || d.Cost > limit || limit < w.limit && (w.used > 0 || units > 0) {
		return 0, false
	}
	left := max(limit-w.used, 0)
	d.States[i] = ratelimit.State{Remaining: left - units, Reset: w.end}
	if left < d.Cost {
		roomAt = gcra.Of(w.end, 0)
	}
	return roomAt, true
}

// smoothState is state for a smooth quota. The lock writes a bucket that is full
// again, unless it is charged at once, so that it stays full if the clock steps back.
func (w *window) smoothState(d *ratelimit.Decision, i int, units int64) (roomAt gcra.Time, ok bool) {
	b, now := bucket(d.Plan, i), gcra.At(d.Time)
	full := max(w.full(), now)
	if full == now && w.end > 0 && units == 0 ||
		b.Limited(full, now) < full || d.Cost > b.Burst() || smoothLimit(b) < w.limit {
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
