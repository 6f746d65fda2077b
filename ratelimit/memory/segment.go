package memory

import (
	"sync"
	"sync/atomic"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A segment is a part of the subjects, chosen by the upper bits of their
// hashes, with a lock and a table of its own. It is small enough that whatever
// is done to all of it at once takes microseconds.
type segment struct {
	table *atomic.Pointer[table] // one of Limiter.tables

	mu    sync.Mutex
	used  uint64   // slots in use
	hand  uint64   // where the next sweep begins
	names names    // of the banned
	gone  []uint64 // keys dropped before their time, for Save

	_ [64]byte // keeps one segment's lock and another's table off one cache line
}

// An entry is a subject's account, taken out of its slot to be worked on under
// the segment's lock. The slot stays frozen until the entry is put back.
type entry struct {
	account
	slot slot // nil: the subject has none
	old  meter
}

// peek reads the account of h and leaves the slot as it is.
func (l *Limiter) peek(s *segment, h uint64) (e entry) {
	t := s.table.Load()
	if i, found := t.find(h); found {
		e.slot = t.slot(i)
		e.read(l, e.slot.meter())
	}
	return e
}

// take reads the account of h, rolled to now and plan, and freezes its slot. A
// call of put follows before anything else is done to the table.
func (l *Limiter) take(s *segment, h uint64, now int64, plan *ratelimit.Plan) (e entry) {
	if e = l.peek(s, h); e.slot == nil {
		e.roll(now, plan)
		return e
	}
	if !e.matches(plan) {
		e.roll(now, plan)
		s.widen(e.n)
	}
	t := s.table.Load()
	i, _ := t.find(h)
	e.slot = t.slot(i)
	e.read(l, e.slot.freeze())
	e.roll(now, plan)
	return e
}

func (e *entry) read(l *Limiter, m meter) {
	e.old = m
	e.count = m.count()
	e.shape = *l.shapes.get(m.shape())
	for k := range e.n {
		w := e.slot.window(k)
		e.began[k], e.end[k] = w.began(), w.end()
	}
}

// put writes the account back, into a new slot if it had none. If it cannot,
// the slot is as it was.
func (l *Limiter) put(s *segment, h uint64, e *entry, flags meter, now int64) error {
	number, err := l.shapes.number(e.shape)
	if err == nil && e.slot == nil {
		e.slot, err = l.place(s, h, e.n, now)
	}
	if err != nil {
		if e.slot != nil {
			e.slot.setMeter(e.old.after(e.old))
		}
		return err
	}
	for k := range e.n {
		e.slot.setWindow(k, newWindow(e.began[k], e.end[k]))
	}
	e.slot.setMeter((newMeter(e.count, number) | flags | dirty).after(e.slot.freeze()))
	return nil
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

// putRecord stores the record of h, or drops it if it says nothing.
func (l *Limiter) putRecord(s *segment, h uint64, r record, now int64) error {
	if r.empty() {
		l.drop(s, recordHash(h))
		return nil
	}
	slot, err := l.place(s, recordHash(h), recordWindows, now)
	if err != nil {
		return err
	}
	old := slot.freeze()
	r.write(slot, old)
	return nil
}

// place returns the slot of h, or a new one, which it leaves frozen.
func (l *Limiter) place(s *segment, h uint64, windows int, now int64) (slot, error) {
	s.widen(windows)
	if t := s.table.Load(); t.slots > 0 {
		if i, found := t.find(h); found {
			return t.slot(i), nil
		}
	}
	l.sweep(s, now, insertSteps)
	if !l.makeRoom(s, now) {
		return nil, errFull
	}
	t := s.table.Load()
	if (s.used+1)*100 > t.slots*fullest {
		t = t.resized(t.slots+max(t.slots/4, minSlots), t.stride)
		s.table.Store(t)
	}
	i, _ := t.find(h)
	slot := t.slot(i)
	slot.freeze()
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

// drop removes the slot of h, if there is one.
func (l *Limiter) drop(s *segment, h uint64) {
	t := s.table.Load()
	if i, found := t.find(h); found {
		l.dropAt(s, t, i)
		l.forgotten(s, h)
	}
}

func (l *Limiter) dropAt(s *segment, t *table, i uint64) {
	t.remove(i)
	s.used--
	l.held.Add(-1)
}
