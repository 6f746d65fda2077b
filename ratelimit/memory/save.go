package memory

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A Record is a part of an engine's state, for a row of a database or a line of a
// file. An engine with another secret refuses it, since it cannot know the subject.
//
// A store keeps the latest record of each key, and deletes the row if its Data is
// empty. It may also delete a row a minute after Expires: Save does not report
// that a record has expired. Alternatively it appends every record to a file, and
// loads all of the file in order.
type Record struct {
	Key     uint64 // of the account or of its strikes and bans
	Data    []byte // empty: the engine has forgotten this key
	Expires int64  // Unix seconds from which on it means nothing; 0 without Data
}

const (
	saveBatch = 4096

	// maxForgotten is how many forgotten keys a segment remembers for Save: only those
	// that were saved or loaded. There are more only if Save fails again and again.
	maxForgotten = 2 * subjectsInSegment
)

// Save calls write with what changed since its last call, in portions of a few
// thousand records. Store records in their order, since a key may be forgotten and
// come back. If write fails, Save stops with its error, and the next call saves what
// was not written. What [Limiter.Load] loaded counts as changed until
// [Limiter.MarkSaved] is called.
//
// The function write may keep the Data of a record, but not the slice of records,
// which is used again. Save holds no lock while write runs. It locks one segment of
// some thousand subjects at a time, for about a tenth of a microsecond for each
// record. Do not call it concurrently.
func (l *Limiter) Save(write func([]Record) error) error {
	var batch []Record
	for i := range l.segments {
		batch = l.segments[i].appendChanges(batch)
		if len(batch) >= saveBatch || i == len(l.segments)-1 && len(batch) > 0 {
			if err := write(batch); err != nil {
				l.markUnsaved(batch)
				return fmt.Errorf("memory: saving state: %w", err)
			}
			batch = batch[:0]
		}
	}
	return nil
}

// MarkSaved makes the next Save pass on only what changes from now on. Call it after
// [Limiter.Load] if the store that Save writes to still has the records that were loaded.
// Do not call it concurrently with Save.
func (l *Limiter) MarkSaved() {
	for i := range l.segments {
		l.segments[i].markSaved()
	}
}

func (s *segment) markSaved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten = nil
	t := s.table.Load()
	for i := range t.slots {
		if slot := t.slot(i); slot.hash() != 0 {
			slot.mark(0, dirty)
		}
	}
}

// Records returns the records of all keys from first to last, changed or not. They replace
// all records with these keys that Save has passed on so far, so that a store which
// appends what Save passes on can delete those. The next Save still passes on what has
// changed since the last one.
//
// Like Save it locks one segment at a time. It may be called at any time.
func (l *Limiter) Records(first, last uint64) []Record {
	var records []Record
	for i := first >> l.shift; i <= last>>l.shift; i++ {
		records = l.segments[i].appendRecords(records, first, last)
	}
	return records
}

// appendChanges appends the records of what changed, and marks it as saved.
func (s *segment) appendChanges(batch []Record) []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.forgotten {
		batch = append(batch, Record{Key: key})
	}
	s.forgotten = nil
	t := s.table.Load()
	for i := range t.slots {
		if slot := t.slot(i); slot.hash() != 0 && slot.meter().has(dirty) {
			batch = append(batch, s.encode(slot, slot.mark(stored, dirty)))
		}
	}
	return batch
}

// appendRecords appends the records with keys from first to last. Save must then report
// their end.
func (s *segment) appendRecords(records []Record, first, last uint64) []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table.Load()
	for i := range t.slots {
		slot := t.slot(i)
		if h := slot.hash(); h != 0 && first <= h && h <= last {
			records = append(records, s.encode(slot, slot.mark(stored, 0)))
		}
	}
	return records
}

// markUnsaved makes the next Save save the records again.
func (l *Limiter) markUnsaved(batch []Record) {
	for _, r := range batch {
		s := l.lockKey(r.Key)
		t := s.table.Load()
		if i, found := t.find(r.Key); found {
			slot := t.slot(i)
			m := slot.freeze()
			slot.setMeter((m | dirty | stored).after(m)) // the store may have an earlier record
		} else {
			s.forget(r.Key)
		}
		s.unlock()
	}
}

// noteForgotten notes for the next Save that a slot is dropped before its time.
func (s *segment) noteForgotten(slot slot) {
	if slot.meter().has(stored) {
		s.forget(slot.hash())
	}
}

func (s *segment) forget(key uint64) {
	if len(s.forgotten) < maxForgotten {
		s.forgotten = append(s.forgotten, key)
	}
}

// Load loads what an engine with the same secret saved. Of several records with one
// key the last one counts, also if it says that the key was forgotten. A record that
// expired more than a minute ago says the same. Load skips records for which there is
// no room.
// Call it before the engine decides anything. An error names a record that has damaged
// data or that another secret saved; the records before it have been loaded.
func (l *Limiter) Load(records []Record) error {
	for len(records) > 0 {
		n := 1 // records of one segment, which are loaded under one lock
		for n < len(records) && records[n].Key>>l.shift == records[0].Key>>l.shift {
			n++
		}
		if err := l.loadSegment(records[:n]); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

// loadSegment loads records of one segment.
func (l *Limiter) loadSegment(records []Record) error {
	s := l.lockKey(records[0].Key)
	defer s.unlock()
	s.grow(uint64(len(records)))
	for _, r := range records {
		if r.Key < 2 {
			continue
		}
		one := subject{segment: s.segment, hash: accountHash(r.Key), now: s.now, loading: true}
		if err := one.load(r); err != nil && !errors.Is(err, ratelimit.ErrUnavailable) {
			return fmt.Errorf("memory: loading record %016x: %w", r.Key, err)
		}
	}
	return nil
}

func (s *subject) load(r Record) error {
	head := s.key.dataHead(r.Key)
	switch {
	case len(r.Data) == 0, r.Expires*int64(time.Second)+keepExpired <= s.now:
		s.drop(r.Key) // an earlier record may have loaded it, also one that expires later
		return nil
	case r.Data[0] != head[0]:
		return errData
	case !bytes.HasPrefix(r.Data, head):
		return errSecret
	case r.Key == s.hash:
		return s.loadAccount(r.Data[len(head):])
	}
	return s.loadRecord(r.Data[len(head):])
}

func (s *subject) loadAccount(data []byte) error {
	a, err := decodeAccount(data)
	if err != nil {
		return err
	}
	s.freeze()
	s.account = a
	return s.put(stored)
}

func (s *subject) loadRecord(data []byte) error {
	r, name, err := decodeRecord(data)
	if err != nil || r.expires*int64(time.Second)+keepExpired <= s.now {
		return err
	}
	s.freeze()
	defer s.unfreeze()
	if err := s.putRecord(r, stored); err != nil {
		return err
	}
	s.names.keep(s.hash, name)
	return nil
}
