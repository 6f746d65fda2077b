package memory

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit/internal/fixedwindow"
)

const (
	insertSteps = 4 // slots looked at for each new one
	rollSteps   = 1 // slots looked at when a window begins

	// linger is how long a slot is kept after its time. A clock that steps back
	// by less than that finds every account as it was.
	linger = int64(time.Minute)
)

// sweep looks at the next few slots and drops those that mean nothing any more.
// Traffic pays for it in small steps, so that nothing has to run when there is
// none.
func (l *Limiter) sweep(s *segment, now int64, steps int) {
	t := s.table.Load()
	for range min(steps, int(t.slots)) {
		if s.hand >= t.slots {
			s.hand = 0
			l.narrow(s)
			t = s.table.Load()
		}
		slot := t.slot(s.hand)
		if slot.hash() == 0 {
			s.hand++
			continue
		}
		if m := l.pull(slot, now); !m.frozen() && l.lastUse(slot, m)+linger <= now {
			if m&dirty != 0 {
				s.forgotten(slot) // what was saved may say that it means something for longer
			}
			l.dropAt(s, t, s.hand) // and look at what moved here next time
			continue
		}
		s.hand++
	}
	if s.used*100 < t.slots*emptiest && t.slots > 2*minSlots {
		s.table.Store(t.resized(max(s.used*100/((fullest+emptiest)/2), minSlots), t.stride))
	}
}

// pull brings windows back that lie more than an hour further ahead than a
// window may, because the clock stepped back. It returns the meter of the slot,
// which is in use. A request would bring them back as well; but a subject that
// sends none would keep its place for as long as the clock was ahead.
func (l *Limiter) pull(s slot, now int64) meter {
	m := s.meter()
	shape := l.shapes.get(m.shape()) // of a record and of a frozen slot: none
	for i := range shape.len() {
		length, w := shape.length(i), s.window(i)
		if w.end()*int64(time.Second)-now <= int64(2*length+time.Hour) {
			continue
		}
		m = s.freeze()
		s.setWindow(i, newWindow(w.began(), fixedwindow.LatestEnd(now, length)))
		m = (m | dirty).after(m)
		s.setMeter(m)
	}
	return m
}

// narrow makes the slots as small as the account with the most windows allows,
// once in each round of sweeps.
func (l *Limiter) narrow(s *segment) {
	t := s.table.Load()
	stride := uint64(wordWindows + recordWindows)
	if t.stride == stride {
		return
	}
	for i := range t.slots {
		if slot := t.slot(i); slot.hash() != 0 {
			m := slot.meter()
			if m.frozen() {
				return // how many windows it is about to have is not known
			}
			stride = max(stride, uint64(wordWindows+l.shapes.get(m.shape()).len()))
		}
	}
	if stride < t.stride {
		s.table.Store(t.resized(t.slots, stride))
	}
}

// lastUse returns the time, in Unix nanoseconds, from which on a slot in use
// means nothing. The slot has the meter m and is not frozen.
func (l *Limiter) lastUse(s slot, m meter) int64 {
	if m.shape() == int(recordShape) {
		return int64(m.count()) * int64(time.Second)
	}
	var last int64
	for i := range l.shapes.get(m.shape()).len() {
		last = max(last, s.window(i).end())
	}
	return last * int64(time.Second)
}
