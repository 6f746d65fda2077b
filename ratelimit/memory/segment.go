package memory

import (
	"sync"
	"sync/atomic"
)

// A segment is a part of the subjects, chosen by the upper bits of their
// hashes, with a lock and a table of its own. It is small enough that whatever
// is done to all of it at once is soon done.
type segment struct {
	table *atomic.Pointer[table] // one of Limiter.tables

	mu     sync.Mutex
	used   uint64      // slots in use
	hand   uint64      // where the next sweep begins
	full   int64       // until then, in Unix nanoseconds, no slot can make room; 0: not known
	since  int64       // when that was found
	names  names       // of the banned
	shapes map[int]int // accounts by the number of their shape
	gone   []uint64    // keys dropped before their time, for Save

	_ [64]byte // keeps one segment's lock and another's table off one cache line
}

// An entry is a subject's account, taken out of its slot to be worked on under
// the segment's lock. From take to put its slot is frozen, so that every other
// call for the subject waits for the lock, and sees what is done to the account
// and to the record as one change. The slot may move meanwhile.
type entry struct {
	account
	found  bool // the subject has a slot
	old    meter
	before shape // as the slot has it
	number int   // of the shape, once there is room for the account
}

func (e *entry) read(l *Limiter, s slot, m meter) {
	e.found, e.old = true, m
	e.count = m.count()
	e.shape = l.shapes.get(m.shape()).shape()
	e.before = e.shape
	for k := range e.n {
		w := s.window(k)
		e.began[k], e.end[k] = w.began(), w.end()
	}
}

// peek reads the account of h and leaves the slot as it is.
func (l *Limiter) peek(s *segment, h uint64) (e entry) {
	t := s.table.Load()
	if i, found := t.find(h); found {
		e.read(l, t.slot(i), t.slot(i).meter())
	}
	return e
}

// take freezes the slot of h, if there is one, and reads the account. A call of
// put or thaw follows.
func (l *Limiter) take(s *segment, h uint64) (e entry) {
	t := s.table.Load()
	if i, found := t.find(h); found {
		e.read(l, t.slot(i), t.slot(i).freeze())
	}
	return e
}

// thaw ends what take began, for a slot whose account has not changed.
func (s *segment) thaw(h uint64, e *entry, flags meter) {
	if e.found {
		t := s.table.Load()
		i, _ := t.find(h)
		t.slot(i).setMeter((e.old | flags).after(t.slot(i).meter()))
		s.full = 0 // a search for room has passed it over, or its ban ends earlier now
	}
}

// reserve makes room for the account, in a new slot if it had none. If it
// cannot, the slot is as it was before take.
func (l *Limiter) reserve(s *segment, h uint64, e *entry, now int64) (err error) {
	if e.found && e.shape == e.before {
		e.number = e.old.shape()
		return nil
	}
	if e.number, err = s.number(&l.shapes, &e.shape); err != nil {
		s.thaw(h, e, 0)
		return err
	}
	if e.found {
		s.unnumber(&l.shapes, e.old.shape())
		s.widen(e.n)
		return nil
	}
	if _, err = l.place(s, h, e.n, now); err != nil {
		s.unnumber(&l.shapes, e.number)
		return err
	}
	e.found = true
	return nil
}

// put writes the account into the room that reserve made.
func (l *Limiter) put(s *segment, h uint64, e *entry, flags meter, now int64) {
	t := s.table.Load()
	i, _ := t.find(h)
	slot := t.slot(i)
	for k := range e.n {
		slot.setWindow(k, newWindow(e.began[k], e.end[k]))
	}
	slot.setMeter((newMeter(e.count, e.number) | flags | e.old&stored | dirty).after(slot.meter()))
	if s.full > 0 { // also if that time is over, since the clock may step back
		s.full = min(s.full, l.heldUntil(s, slot, slot.meter(), now))
	}
}

// record reads the record of h; one that has expired says nothing.
func (s *segment) record(h uint64, now int64) (r record, found bool) {
	t := s.table.Load()
	i, found := t.find(recordHash(h))
	if !found {
		return r, false
	}
	r.read(t.slot(i), now)
	return r, true
}

// mark returns the flag for the account of h: marked if the next admission
// changes its record. One that has expired counts as well, since the clock may
// step back.
func (s *segment) mark(h uint64) meter {
	if r, _ := s.record(h, 0); r.pending() {
		return marked
	}
	return 0
}

// putRecord stores the record of h, with flags beside those it has, or drops it if
// it says nothing.
func (l *Limiter) putRecord(s *segment, h uint64, r record, flags meter, now int64) error {
	if r.empty() {
		l.drop(s, recordHash(h))
		return nil
	}
	slot, err := l.place(s, recordHash(h), recordWindows, now)
	if err != nil {
		return err
	}
	r.write(slot, slot.freeze()|flags)
	return nil
}

// place returns the slot of h, or a new one, which it leaves frozen.
func (l *Limiter) place(s *segment, h uint64, windows int, now int64) (slot, error) {
	t := s.table.Load()
	if i, found := t.find(h); found {
		return t.slot(i), nil
	}
	l.sweep(s, now, insertSteps)
	if !l.makeRoom(s, now) {
		return nil, errFull
	}
	s.widen(windows) // after the sweep, which narrows
	t = s.table.Load()
	if (s.used+1)*100 > t.slots*fullest {
		t = t.resized(t.slots+max(t.slots/4, minSlots), t.stride)
		s.table.Store(t)
	}
	i, _ := t.find(h)
	slot := t.slot(i)
	slot.setMeter(frozen.after(slot.freeze()))
	slot.setHash(h)
	s.used++
	return slot, nil
}

// widen makes the slots hold at least the given number of windows.
func (s *segment) widen(windows int) {
	if t := s.table.Load(); uint64(windows+wordWindows) > t.stride {
		s.table.Store(t.resized(t.slots, uint64(windows+wordWindows)))
	}
}

// drop removes the slot of h, if there is one, before its time.
func (l *Limiter) drop(s *segment, h uint64) {
	t := s.table.Load()
	if i, found := t.find(h); found {
		s.forgotten(t.slot(i))
		l.dropAt(s, t, i)
		s.full = 0
	}
}

// dropAt empties slot i.
func (l *Limiter) dropAt(s *segment, t *table, i uint64) {
	l.vacate(s, t, i, t.slot(i).freeze())
	l.held.Add(-1)
}

// vacate empties slot i, which is frozen and had the meter m, and leaves it
// counted as held, for another.
func (l *Limiter) vacate(s *segment, t *table, i uint64, m meter) {
	if m.shape() < maxShapes {
		s.unnumber(&l.shapes, m.shape())
	}
	t.remove(i)
	s.used--
}
