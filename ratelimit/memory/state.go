package memory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A Record is a part of an engine's state in the form in which it is kept
// elsewhere: in a row of a database, in a line of a file. Its Data means
// something only to an engine with the same secret; an engine with another one
// loads it without an error, and counts it for no subject.
//
// A store keeps the latest record of each key, and deletes the row if its Data is
// empty. It may also delete a row a minute after Expires: Save does not pass
// on that a record has expired. Or it adds every record to the end of a file, and
// loads all of the file in order.
type Record struct {
	Key     uint64 // of the account or of its strikes and bans
	Data    []byte // empty: the engine has forgotten this key
	Expires int64  // Unix seconds from which on it means nothing; 0 without Data
}

// Secret returns the key under which subjects are hashed. An engine that is to
// load what this one saved must be made with it. With it, anyone can make
// subjects that share one account.
func (l *Limiter) Secret() []byte {
	var b []byte
	for _, word := range l.key {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

// Save calls write with what changed since the last call of Save, in portions
// of a few thousand records. Records are to be stored in their order, since a key
// may be forgotten and then come back. If write fails, Save stops with its error,
// and what was not written is saved the next time. The slice is used again once
// write returns: write copies the records that it keeps. What [Limiter.Load] took
// in counts as changed, so that the first Save of an engine passes on all of its
// state.
//
// The function write may keep the Data of a record, but not the slice of records.
// Save holds no lock while write runs, and locks one segment of some thousand
// subjects at a time, for about a tenth of a microsecond for each record. Only
// one call may be under way.
func (l *Limiter) Save(write func([]Record) error) error {
	var batch []Record
	first := 0 // segment of the first record in batch
	for i := range l.segments {
		batch = l.collect(&l.segments[i], batch)
		if len(batch) >= saveBatch || i == len(l.segments)-1 && len(batch) > 0 {
			if err := write(batch); err != nil {
				l.uncollect(batch)
				return fmt.Errorf("memory: saving state of segments %d to %d: %w", first, i, err)
			}
			batch, first = batch[:0], i+1
		}
	}
	return nil
}

const (
	saveBatch = 4096

	// maxGone is how many forgotten keys a segment remembers for Save. Only keys
	// that were saved or loaded are remembered, so that there are more only if
	// Save fails again and again.
	maxGone = 2 * subjectsInSegment
)

// collect appends the records of what changed in s, and takes note that they
// have been.
func (l *Limiter) collect(s *segment, batch []Record) []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.gone {
		batch = append(batch, Record{Key: key})
	}
	s.gone = nil
	var names map[uint64]string
	t := s.table.Load()
	for i := range t.slots {
		slot := t.slot(i)
		if slot.hash() == 0 || slot.meter()&dirty == 0 {
			continue
		}
		m := slot.meter()
		for !slot.swap(m, m&^dirty|stored) {
			m = slot.meter()
		}
		rec := Record{Key: slot.hash(), Expires: l.lastUse(slot, m) / int64(time.Second)}
		if m.shape() != int(recordShape) {
			rec.Data = l.encodeAccount(slot, m)
		} else {
			var r record
			r.read(slot, 0)
			if names == nil && r.length > 0 {
				names = s.names.index()
			}
			rec.Data = r.encode(names[accountHash(rec.Key)])
		}
		batch = append(batch, rec)
	}
	return batch
}

// uncollect has the records saved again.
func (l *Limiter) uncollect(batch []Record) {
	for _, r := range batch {
		s := l.segment(r.Key)
		s.mu.Lock()
		t := s.table.Load()
		if i, found := t.find(r.Key); found {
			slot := t.slot(i)
			m := slot.freeze()
			slot.setMeter((m | dirty).after(m))
		} else if r.Data == nil {
			s.forget(r.Key)
		}
		s.mu.Unlock()
	}
}

// forgotten notes for the next Save that what a slot holds is gone before its
// time.
func (s *segment) forgotten(slot slot) {
	if slot.meter()&stored != 0 {
		s.forget(slot.hash())
	}
}

func (s *segment) forget(key uint64) {
	if len(s.gone) < maxGone {
		s.gone = append(s.gone, key)
	}
}

// Load takes in what an engine with the same secret saved. Of several records
// with one key the last one counts, also if it says that the key was forgotten.
// Records that expired more than a minute ago are skipped, as are those for which
// there is no room. Load is meant for an engine that has decided nothing yet. An
// error is about the data of the record that it names; those before it have been
// loaded.
func (l *Limiter) Load(records []Record) error {
	now := l.clock.now()
	for _, r := range records {
		switch {
		case r.Key < 2:
		case len(r.Data) == 0:
			l.unload(r.Key)
		case r.Expires*int64(time.Second)+linger > now:
			if err := l.load(r, now); err != nil && !errors.Is(err, ratelimit.ErrUnavailable) {
				return fmt.Errorf("memory: loading record %016x: %w", r.Key, err)
			}
		}
	}
	return nil
}

func (l *Limiter) unload(key uint64) {
	s := l.segment(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.drop(s, key)
}

func (l *Limiter) load(r Record, now int64) error {
	s := l.segment(r.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch isRecord := r.Key == recordHash(r.Key); {
	case r.Data[0] == kindAccount && !isRecord:
		return l.loadAccount(s, r, now)
	case r.Data[0] == kindRecord && isRecord:
		return l.loadRecord(s, accountHash(r.Key), r.Data[1:], now)
	}
	return errData
}

func (l *Limiter) loadAccount(s *segment, r Record, now int64) error {
	var a account
	if err := a.decode(r.Data[1:]); err != nil {
		return err
	}
	e := l.take(s, r.Key)
	e.account = a
	if err := l.reserve(s, r.Key, &e, now); err != nil {
		return err
	}
	l.put(s, r.Key, &e, stored|s.mark(r.Key), now)
	return nil
}

func (l *Limiter) loadRecord(s *segment, h uint64, data []byte, now int64) error {
	var r record
	name, err := r.decode(data)
	if err != nil || r.expires*int64(time.Second)+linger <= now {
		return err
	}
	e := l.take(s, h)
	if err := l.putRecord(s, h, r, stored, now); err != nil {
		s.thaw(h, &e, 0)
		return err
	}
	s.thaw(h, &e, s.mark(h))
	if name != "" { // a ban that is long over has none
		s.name(h, name, now)
	}
	return nil
}
