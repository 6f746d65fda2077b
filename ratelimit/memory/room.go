package memory

import (
	"fmt"
	"math"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

const (
	candidates = 16  // slots compared to find the least loss
	glances    = 128 // slots looked at for that, if one of them can make room
)

var errFull = fmt.Errorf("%w: the table is full of subjects that are banned, have strikes, or have used half of a quota", ratelimit.ErrUnavailable)

// makeRoom reports whether one more slot may be used, and counts it. At the bound
// it drops one for it: one that means nothing any more, or else the account, of a
// few, that has used least. It never drops one that is held; if there is nothing
// else, it refuses, and does not look again before the first of those that are
// held can be dropped, unless the clock steps back.
func (l *Limiter) makeRoom(s *segment, now int64) bool {
	if l.held.Add(1) <= l.bound {
		return true
	}
	l.held.Add(-1)
	if s.full > now && s.since <= now {
		l.refused.Add(1)
		return false
	}
	s.full = 0
	t := s.table.Load()
	victim, least, seen, expired := t.slots, int64(0), 0, false
	full := int64(math.MaxInt64)
	for looked := range t.slots {
		if seen == candidates || seen > 0 && looked >= glances {
			break
		}
		if s.hand >= t.slots {
			s.hand = 0
		}
		i := s.hand
		s.hand++
		slot := t.slot(i)
		if slot.hash() == 0 {
			continue
		}
		m := l.pull(slot, now)
		if m.frozen() {
			continue
		}
		if l.lastUse(slot, m) <= now {
			victim, expired = i, true
			break
		}
		if until := l.heldUntil(s, slot, m, now); until > now {
			full = min(full, until)
			continue
		}
		used := slot.window(l.shapes.get(m.shape()).len() - 1).used(m.count())
		if victim == t.slots || used < least {
			victim, least = i, used
		}
		seen++
	}
	if victim == t.slots {
		l.refused.Add(1)
		if full < math.MaxInt64 {
			s.full, s.since = full, now
		}
		return false
	}
	slot := t.slot(victim)
	m := slot.freeze()
	if !expired {
		if l.heldUntil(s, slot, m, now) > now { // it was charged since it was looked at
			slot.setMeter(m.after(m))
			return l.makeRoom(s, now)
		}
		l.evicted.Add(1)
	}
	if !expired || m&dirty != 0 {
		s.forgotten(slot) // if it expired: what was saved may not have
	}
	l.vacate(s, t, victim, m)
	return true
}

// heldUntil returns the time, in Unix nanoseconds, until which a slot in use must
// not be forgotten for another; 0 if it may be.
func (l *Limiter) heldUntil(s *segment, slot slot, m meter, now int64) (until int64) {
	if m.shape() == int(recordShape) {
		return l.lastUse(slot, m)
	}
	shape := l.shapes.get(m.shape())
	for i := range shape.len() {
		if w := slot.window(i); heavy(w.used(m.count()), shape.limit(i)) {
			until = max(until, w.end())
		}
	}
	if m&marked != 0 {
		r, _ := s.record(slot.hash(), now)
		until = max(until, r.banEnds(now))
		if r.strikes > 0 {
			until = max(until, r.expires)
		}
	}
	return min(until*int64(time.Second), l.lastUse(slot, m))
}
