package memory

import (
	"sync"
	"sync/atomic"

	"github.com/animalstore/gatehouse/internal/gcra"
)

// A segment is a part of the subjects, chosen by the upper bits of their hashes,
// with a lock and a table of its own. It is so small that a change of the whole
// table takes little time.
type segment struct {
	table    *atomic.Pointer[table] // one of Limiter.tables
	capacity *capacity
	layouts  *layouts
	key      *hashKey

	mu         sync.Mutex
	used       uint64  // slots in use
	clockHand  uint64  // the slot at which the next sweep begins
	roomHand   uint64  // the slot at which the next search for room begins
	roomTime   instant // the latest time at which table.kept was written
	looked     int     // at how many slots the last makeRoom has looked, at most maxLooked
	generation uint32  // how many subjects were reset or evicted
	names      names
	returns    map[bucketKey][]gcra.Return
	forgotten  []uint64 // keys dropped before their time, for Save

	_ [64]byte // keeps one segment's lock and another's table off one cache line
}

// A subject is one subject and the lock of its segment: its account and its conduct
// can be read and changed. A change of the account is
//
//	s.freeze()          the slot is frozen, and s.account is read from it
//	...                 s.account and the conduct are changed
//	s.put(dirty)        the slot gets s.account; or s.unfreeze() leaves it as it was
//
// While the slot is frozen, every other call for the subject waits for the lock. It
// sees what is done to account and conduct as one change. The slot may move
// meanwhile.
type subject struct {
	*segment
	hash    uint64 // of the account
	now     instant
	loading bool // in Load, which has made the table large enough

	account account
	found   bool  // the account has a slot
	meter   meter // of that slot, as it was read: dirty or stored; 0 if the slot is new
	number  int   // of the layout, once there is room for the account
}

// isNew reports whether the account had no slot before.
func (s *subject) isNew() bool { return s.meter == 0 }

// lock locks the segment of a subject.
func (l *Limiter) lock(name string) subject { return l.lockKey(l.key.sum(name)) }

// lockKey locks the segment of the subject that has the hash of its account or its
// conduct as a key.
func (l *Limiter) lockKey(key uint64) (s subject) {
	s.segment, s.hash = &l.segments[key>>l.shift], accountHash(key)
	s.mu.Lock()
	s.now = l.clock.now()
	return s
}

func (s *subject) unlock() { s.mu.Unlock() }

// freeze freezes the slot and reads the account. A call of put or unfreeze
// follows.
func (s *subject) freeze() {
	if slot, found := s.slot(); found {
		s.found, s.meter = true, slot.freeze()
		s.account.read(&s.layouts.get(s.meter.layout()).layout, slot, s.meter.withCount())
	}
}

func (s *subject) slot() (slot, bool) {
	t := s.table.Load()
	i, found := t.find(s.hash)
	if !found {
		return nil, false
	}
	return t.slot(i), true
}

// unfreeze ends what freeze began, for an account that has not changed. The conduct
// may have.
func (s *subject) unfreeze() {
	if slot, found := s.slot(); found {
		s.setMeter(slot, s.meter.withCount())
	}
}

// put makes room for the account and writes it, with flags beside those it needs.
// If there is no room, the slot is as it was before freeze.
func (s *subject) put(flags meter) error {
	if err := s.reserve(); err != nil {
		return err
	}
	s.write(flags)
	return nil
}

// reserve makes room for the account, in a new slot if it had none. If there is no
// room, the slot is as it was before freeze.
func (s *subject) reserve() (err error) {
	layout := s.account.layout()
	if s.found && layout == s.layouts.get(s.meter.layout()).layout {
		s.number = s.meter.layout()
		return nil
	}
	if s.number, err = s.layouts.add(layout); err != nil {
		s.unfreeze()
		return err
	}
	if s.found {
		s.layouts.remove(s.meter.layout())
		s.fit(0, layout.words())
		return nil
	}
	if _, err = s.place(s.hash, layout.words()); err != nil {
		s.layouts.remove(s.number)
		return err
	}
	s.found = true
	return nil
}

// unplace takes back a slot that reserve made, which nothing was written into.
func (s *subject) unplace() {
	t := s.table.Load()
	i, _ := t.find(s.hash)
	s.removeSlot(t, i, newMeter(0, s.number))
	s.capacity.used.Add(-1)
}

// write writes the account into the room that reserve made.
func (s *subject) write(flags meter) {
	slot, _ := s.slot()
	s.account.write(slot, &s.layouts.get(s.number).layout)
	s.setMeter(slot, newMeter(s.account.count, s.number)|flags|s.meter&(stored|dirty))
}

// setMeter puts the meter into the slot, which is frozen, with what it says of conduct, and with
// the end of a ban that is not by hand. Conduct that has expired, and a ban that is over, count
// as well, since the clock may step back.
//
// An admission under the lock drops conduct that has expired. If there is conduct, the first
// request of a window takes the lock. So others must read only what expires before that.
func (s *subject) setMeter(slot slot, m meter) {
	m &^= conductMask
	switch c, found := s.conduct(0); {
	case c.length > 0 && c.cause == byStrikes: // of a ban by hand the conduct has the reason
		s.layouts.get(m.layout()).rebase(slot, m.count())
		m = m&(countUnit-1) | banned | meter(c.until)*countUnit
		bansSince := &s.table.Load().bansSince
		bansSince.Store(max(bansSince.Load(), int64(c.until.add(-c.length))))
	case c.changesOnAdmission() || found && s.account.endsNoWindowBy(c.expires):
		m |= checkConduct
	case found:
		m |= quietConduct
	}
	slot.setMeter(m.after(slot.meter()))
	s.noteKept(s.hash) // its ban may end earlier now
}

// noteKept notes until when the slot of a key is kept. A search for room may have passed
// over the slot while it was frozen.
func (s *subject) noteKept(key uint64) {
	t := s.table.Load()
	i, _ := t.find(key)
	if t.kept[i/blockSlots] > 0 {
		until, _ := s.keptUntil(t.slot(i), t.slot(i).meter(), s.now)
		t.release(i, until)
		s.roomTime = max(s.roomTime, s.now)
	}
}

// conduct returns the subject's conduct, and whether it has any. Conduct that has
// expired by the given time is empty.
func (s *subject) conduct(at instant) (conduct, bool) { return s.table.Load().conduct(s.hash, at) }

// putConduct stores the conduct, with flags beside those it has, or drops it if it is
// empty.
func (s *subject) putConduct(c conduct, flags meter) error {
	if c.empty() {
		s.drop(conductHash(s.hash))
		return nil
	}
	slot, err := s.place(conductHash(s.hash), conductWords)
	if err != nil {
		return err
	}
	c.write(slot, slot.freeze(), flags)
	if c.length == 0 { // no ban, or one that is over
		s.names.drop(s.hash)
	}
	s.noteKept(conductHash(s.hash))
	return nil
}

// place returns the slot of a key, or a new one of so many words beside hash and meter,
// which it leaves frozen. The key is the hash of the account or of the conduct.
func (s *subject) place(key uint64, words int) (slot, error) {
	t := s.table.Load()
	if i, found := t.find(key); found {
		return t.slot(i), nil
	}
	if !s.loading {
		s.sweep(s.now, insertSteps) // which also makes a table smaller
	}
	if !s.makeRoom(s.now) {
		return nil, errFull
	}
	s.fit(1, words)
	t = s.table.Load()
	i, _ := t.find(key)
	slot := t.slot(i)
	slot.setMeter(frozen.after(slot.freeze()))
	slot.setHash(key)
	s.used++
	return slot, nil
}

// fit makes the table large enough for n more slots in use, and for so many words in each
// beside hash and meter.
func (s *segment) fit(n uint64, words int) {
	t := s.table.Load()
	slots := t.slots
	if (s.used+n)*100 > slots*fullest {
		slots = max(slots+max(slots/4, minSlots), (s.used+n)*100/fullest+1)
	}
	if slots > t.slots || uint64(firstWindow+words) > t.stride {
		s.resize(slots, words)
	}
}

// resize gives the table another size, with slots as small as so many words and the
// account with the most allow.
func (s *segment) resize(slots uint64, words int) {
	t := s.table.Load()
	stride := uint64(firstWindow + max(words, conductWords))
	for i := range t.slots {
		switch m := t.slot(i).meter(); {
		case t.slot(i).hash() == 0:
		case m.isFrozen(): // how many words it is about to have is not known
			stride = max(stride, t.stride)
		default:
			stride = max(stride, uint64(firstWindow+s.layouts.get(m.layout()).words()))
		}
	}
	s.table.Store(t.resized(slots, stride))
}

// drop removes the slot of a key, if there is one, before its time.
func (s *segment) drop(key uint64) {
	t := s.table.Load()
	if i, found := t.find(key); found {
		s.noteForgotten(t.slot(i))
		s.removeSlot(t, i, t.slot(i).freeze())
		s.capacity.used.Add(-1)
	}
}

// removeSlot empties slot i, which is frozen and had the meter m. The slot still
// counts as used in the capacity.
func (s *segment) removeSlot(t *table, i uint64, m meter) {
	if m.isConduct() {
		s.names.drop(accountHash(t.slot(i).hash()))
	} else {
		s.layouts.remove(m.layout())
	}
	t.remove(i)
	s.used--
}
