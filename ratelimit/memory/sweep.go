package memory

import (
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

const (
	insertSteps = 4  // slots looked at for each new one
	rollSteps   = 1  // slots looked at when a window begins
	candidates  = 16 // slots compared to find the least loss

	// linger is how long a slot is kept after its time. A clock that steps back
	// by less than that finds every account as it was.
	linger = int64(time.Minute)
)

var errFull = fmt.Errorf("%w: the table is full of subjects that are banned or have used half of a quota", ratelimit.ErrUnavailable)

// sweep looks at the next few slots and drops those that mean nothing any more.
// Traffic pays for it in small steps, so that nothing has to run when there is
// none.
func (l *Limiter) sweep(s *segment, now int64, steps int) {
	t := s.table.Load()
	for range min(steps, int(t.slots)) {
		if s.hand >= t.slots {
			s.hand = 0
		}
		if slot := t.slot(s.hand); slot.hash() != 0 && l.lastUse(slot)+linger <= now {
			l.dropAt(s, t, s.hand) // and look at what moved here next time
			continue
		}
		s.hand++
	}
	if s.used*100 < t.slots*emptiest && t.slots > 2*minSlots {
		s.table.Store(t.resized(max(s.used*100/((fullest+emptiest)/2), minSlots), t.stride))
	}
}

// lastUse returns the time, in Unix nanoseconds, from which on a slot means
// nothing.
func (l *Limiter) lastUse(s slot) int64 {
	m := s.meter()
	if m.shape() == int(recordShape) {
		return int64(m.count()) * int64(time.Second)
	}
	var last int64
	for i := range l.shapes.get(m.shape()).n {
		last = max(last, s.window(i).end())
	}
	return last * int64(time.Second)
}

// makeRoom reports whether one more slot may be used, and counts it. At the bound
// it drops one for it: one that means nothing any more, or else the account, of a
// few, that has used least. It never drops a record, nor an account that has a
// record to be looked at or has used half of a quota; if there is nothing else,
// it refuses.
func (l *Limiter) makeRoom(s *segment, now int64) bool {
	if l.held.Add(1) <= l.bound {
		return true
	}
	l.held.Add(-1)
	t := s.table.Load()
	victim, least, seen, expired := t.slots, int64(0), 0, false
	for range t.slots {
		if s.hand >= t.slots {
			s.hand = 0
		}
		i := s.hand
		s.hand++
		slot := t.slot(i)
		if slot.hash() == 0 {
			continue
		}
		if l.lastUse(slot) <= now {
			victim, expired = i, true
			break
		}
		if l.holds(slot, now) {
			continue
		}
		m := slot.meter()
		used := slot.window(l.shapes.get(m.shape()).n - 1).used(m.count())
		if victim == t.slots || used < least {
			victim, least = i, used
		}
		if seen++; seen == candidates {
			break
		}
	}
	if victim == t.slots {
		l.refused.Add(1)
		return false
	}
	if !expired {
		l.evicted.Add(1)
		if len(s.gone) < maxGone {
			l.forgotten(s, t.slot(victim).hash())
		}
	}
	t.remove(victim) // the new slot is counted in its place
	s.used--
	return true
}

// holds reports whether a slot in use must not be forgotten at time now.
func (l *Limiter) holds(s slot, now int64) bool {
	m := s.meter()
	if m.shape() == int(recordShape) || m&(marked|heavyLong) != 0 {
		return true
	}
	if m&heavyShort == 0 {
		return false
	}
	for i := range l.shapes.get(m.shape()).n - 1 {
		if s.window(i).end()*int64(time.Second) > now {
			return true
		}
	}
	return false
}

// heaviness returns the flags for an account that d was admitted to.
func heaviness(d *ratelimit.Decision) (flags meter) {
	last := d.Plan.Len() - 1
	for i := range d.Plan.Len() {
		if d.States[i].Remaining*2 > d.Plan.Quota(i).Limit {
			continue
		}
		if i == last {
			flags |= heavyLong
		} else {
			flags |= heavyShort
		}
	}
	return flags
}
