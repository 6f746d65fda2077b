package memory

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

const (
	insertSteps = 5  // slots swept for each new one
	rollSteps   = 16 // slots swept for one of as many windows that begin; see begin

	// keepExpired is how long a slot is kept after it has expired. A clock that
	// steps back by less than that finds every account as it was.
	keepExpired = time.Minute

	sampleSize = 16             // slots compared to find the one that used least
	maxLooked  = 4 * blockSlots // slots looked at for that
)

// A capacity counts the slots that an engine may use.
type capacity struct {
	bound   int64
	used    atomic.Int64
	evicted atomic.Uint64
	refused atomic.Uint64
}

// claim reports whether one more slot may be used, and counts it.
func (c *capacity) claim() bool {
	if c.used.Add(1) <= c.bound {
		return true
	}
	c.used.Add(-1)
	return false
}

// sweep visits the next few slots and drops those that have expired. Requests
// pay for it in small steps, so that nothing has to run when there are none.
func (s *segment) sweep(now instant, steps int) {
	for range steps {
		if s.clockHand >= s.table.Load().slots {
			s.clockHand = 0
		}
		if dropped := s.sweepSlot(s.clockHand, now); !dropped {
			s.clockHand++ // otherwise another slot may have moved here
		}
	}
	if t := s.table.Load(); s.used*100 < t.slots*emptiest && t.slots > 2*minSlots {
		s.resize(max(s.used*100/((fullest+emptiest)/2), minSlots), 0)
	}
}

// sweepSlot drops a slot if it has expired, and reports whether it did.
func (s *segment) sweepSlot(at uint64, now instant) (dropped bool) {
	t := s.table.Load()
	slot := t.slot(at)
	if slot.hash() == 0 {
		return false
	}
	m := s.pullBack(t, at, now)
	if m.isFrozen() || s.expiry(slot, m).add(keepExpired) > now {
		return false
	}
	m = slot.freeze()
	if s.expiry(slot, m).add(keepExpired) > now { // a smooth quota has been charged since
		slot.setMeter(m.after(m))
		return false
	}
	if m.has(dirty) {
		s.noteForgotten(slot) // what was saved may expire later
	}
	s.removeSlot(t, at, m)
	s.capacity.used.Add(-1)
	return true
}

// pullBack brings windows back that lie more than an hour further ahead than a
// window may, because the clock stepped back. It returns the meter of the slot,
// which is in use. A request would bring them back as well, but a subject that sends
// none would keep its slot for as long as the clock was ahead. Conduct keeps its slot
// until the time that the clock said before.
func (s *segment) pullBack(t *table, at uint64, now instant) meter {
	slot := t.slot(at)
	m := slot.settled()
	layout := s.layouts.get(m.layout()) // of conduct and of a frozen slot: none
	for i := range layout.n {
		w := layout.window(i, slot, m)
		if w.end.instant().since(now) <= 2*w.kind.Length()+time.Hour {
			continue
		}
		m = slot.freeze()
		slot.setWindow(i, newWindowWord(slot.window(i).began(), w.latestEnd(now)))
		m = (m | dirty).after(m)
		slot.setMeter(m)
		t.release(at, 0)
	}
	return m
}

// expiry returns the time from which on a slot in use means nothing. The slot has the meter m
// and is not frozen.
func (s *segment) expiry(slot slot, m meter) instant {
	if m.isConduct() {
		return m.expires().instant()
	}
	var last unixSecond
	for i := range s.layouts.get(m.layout()).n {
		last = max(last, slot.window(i).end())
	}
	return last.instant()
}

// keptUntil returns the time until which a slot in use must not be evicted, and the largest share
// of a limit or burst that it has used. It may be evicted if that time is over.
func (s *segment) keptUntil(slot slot, m meter, now instant) (until instant, used float64) {
	if m.isConduct() {
		return s.expiry(slot, m), 0
	}
	var end, last unixSecond
	layout := s.layouts.get(m.layout())
	for i := range layout.n {
		w := layout.anyWindow(i, slot, m.withCount())
		end, last, used = max(end, w.keptUntil()), max(last, w.end), max(used, w.share(now))
	}
	if m.conduct() >= checkConduct {
		c, _ := s.table.Load().conduct(slot.hash(), now)
		end = max(end, c.banEnds(now))
		if c.strikes > 0 {
			end = max(end, c.expires)
		}
	}
	return min(end, last).instant(), used
}

var errFull = fmt.Errorf("memory: %w: nearly every subject in the table is banned, has strikes, or has used half of a quota: raise Options.MaxSubjects", ratelimit.ErrUnavailable)

// makeRoom reports whether one more slot may be used, and counts it. At the bound it first
// evicts one that is not kept.
func (s *segment) makeRoom(now instant) bool {
	if s.capacity.claim() {
		return true
	}
	if now < s.roomTime { // the clock stepped back, and some may be kept for less time
		t := s.table.Load()
		clear(t.kept)
		t.allKept = 0
	}
	s.roomTime, s.looked = now, 0
	for {
		v := s.findVictim(now)
		if !v.found {
			s.capacity.refused.Add(1)
			return false
		}
		if s.evict(v, now) {
			return true
		}
	}
}

// A victim is a slot that can make room for another.
type victim struct {
	found   bool
	at      uint64
	expired bool
	used    float64 // the largest share of a limit or burst that it has used, less than half
}

// A sample is what a search for room has found so far.
type sample struct {
	best victim
	size int // slots that are not kept
}

// isEnough reports whether the search can end.
func (f *sample) isEnough() bool { return f.best.expired || f.size == sampleSize }

func (f *sample) add(v victim) {
	if !v.found {
		return
	}
	f.size++
	if !f.best.found || v.expired || v.used < f.best.used {
		f.best = v
	}
}

// findVictim returns a slot that has expired or else, of a sample of those that are not kept, the
// one that used the smallest share of any quota. It passes over blocks in which all are kept, and
// ends rather than search a part of a block, so that each search that finds none leaves fewer
// blocks to the next one.
func (s *segment) findVictim(now instant) victim {
	t := s.table.Load()
	if t.allKept > now {
		return victim{}
	}
	var found sample
	for seen := uint64(0); seen < t.slots+blockSlots && !found.isEnough(); { // once around the table
		at := s.roomHand % t.slots
		block := at / blockSlots
		end := min((block+1)*blockSlots, t.slots)
		seen += end - at
		if at > block*blockSlots { // the last search ended inside the block
			s.searchSlots(t, at, end, now, &found)
			continue
		}
		if t.kept[block] > now {
			s.roomHand = end
			continue
		}
		if s.looked+blockSlots > maxLooked {
			break
		}
		t.kept[block] = s.searchSlots(t, at, end, now, &found)
	}
	if !found.best.found {
		t.allKept = slices.Min(t.kept)
	}
	return found.best
}

// searchSlots adds the slots of a block from at to its end to the sample, until that is enough. It
// returns until when all of them are kept; 0 if one is not, or if it ended before.
func (s *segment) searchSlots(t *table, at, end uint64, now instant, found *sample) (kept instant) {
	kept = math.MaxInt64
	for ; at < end; at++ {
		if found.isEnough() {
			return 0
		}
		s.roomHand = at + 1
		s.looked++
		v, until := s.candidate(t, at, now)
		found.add(v)
		kept = min(kept, until)
	}
	return kept
}

// candidate returns slot i as a victim. If it is not one, it returns until when; an empty slot
// and a frozen one (see noteKept) never are.
func (s *segment) candidate(t *table, i uint64, now instant) (v victim, keptUntil instant) {
	slot := t.slot(i)
	if slot.hash() == 0 {
		return victim{}, math.MaxInt64
	}
	m := s.pullBack(t, i, now)
	if m.isFrozen() {
		return victim{}, math.MaxInt64
	}
	if s.expiry(slot, m) <= now {
		return victim{found: true, at: i, expired: true}, 0
	}
	until, used := s.keptUntil(slot, m, now)
	if until > now {
		return victim{}, until
	}
	return victim{found: true, at: i, used: used}, 0
}

// evict empties the slot of a victim, which then counts as used by another. It
// reports false if the subject has been charged since it was found, so that it is kept
// now, or has not expired any more.
func (s *segment) evict(v victim, now instant) bool {
	t := s.table.Load()
	slot := t.slot(v.at)
	m := slot.freeze()
	if until, _ := s.keptUntil(slot, m, now); until > now || v.expired && s.expiry(slot, m) > now {
		slot.setMeter(m.after(m))
		return false
	}
	if !v.expired {
		s.capacity.evicted.Add(1)
		s.generation++
	}
	if !v.expired || m.has(dirty) {
		s.noteForgotten(slot) // if it expired: what was saved may not have
	}
	s.removeSlot(t, v.at, m)
	return true
}
