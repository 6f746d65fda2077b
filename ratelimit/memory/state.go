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
// something only to an engine with the same secret.
type Record struct {
	Key     uint64 // of the account or of its strikes and bans
	Data    []byte // nil: the engine has forgotten this key
	Expires int64  // Unix seconds from which on it means nothing
}

// Secret returns the key under which subjects are hashed. An engine that is to
// load what this one saved must be made with it. Whoever knows it can make
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
// and what was not written is saved the next time.
//
// Save holds no lock while write runs, and each part of the table only for
// microseconds. Only one call may be under way.
func (l *Limiter) Save(write func([]Record) error) error {
	l.saving.Store(true)
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
	maxGone   = 1024 // evicted keys that a segment remembers for Save
)

// collect appends the records of what changed in s, and takes note that they
// have been.
func (l *Limiter) collect(s *segment, batch []Record) []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.gone {
		batch = append(batch, Record{Key: key})
	}
	s.gone = s.gone[:0]
	t := s.table.Load()
	for i := range t.slots {
		slot := t.slot(i)
		if slot.hash() == 0 || slot.meter()&dirty == 0 {
			continue
		}
		m := slot.meter()
		for !slot.swap(m, m&^dirty) {
			m = slot.meter()
		}
		batch = append(batch, Record{Key: slot.hash(), Data: l.encode(s, slot, m), Expires: l.lastUse(slot) / int64(time.Second)})
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
			s.gone = append(s.gone, r.Key)
		}
		s.mu.Unlock()
	}
}

// forgotten notes for the next Save that a key is gone before its time.
func (l *Limiter) forgotten(s *segment, key uint64) {
	if l.saving.Load() {
		s.gone = append(s.gone, key)
	}
}

// The first byte of Data tells what follows, in variable-length integers: for
// an account the length, the usage and the end of each window; for strikes and
// bans the fields of the record and the name of the subject.
const (
	kindAccount = 1
	kindRecord  = 2
)

var errData = errors.New("memory: the data of a record is damaged, or from another version")

func (l *Limiter) encode(s *segment, slot slot, m meter) []byte {
	if m.shape() == int(recordShape) {
		var r record
		r.read(slot, 0)
		b := []byte{kindRecord}
		for _, n := range []int64{r.first, int64(r.strikes), int64(r.level), r.until, r.length, r.expires} {
			b = binary.AppendVarint(b, n)
		}
		return append(b, s.names.find(recordHash(slot.hash()))...)
	}
	shape := l.shapes.get(m.shape())
	b := []byte{kindAccount}
	for i := range shape.n {
		w := slot.window(i)
		b = binary.AppendVarint(b, int64(shape.lengths[i]/time.Second))
		b = binary.AppendVarint(b, w.used(m.count()))
		b = binary.AppendVarint(b, w.end())
	}
	return b
}

// Load takes in what an engine with the same secret saved. Records that have
// expired are passed over, as are those for which there is no room. It is meant
// for an engine that has decided nothing yet. An error is about the data of the
// record that it names; those before it have been loaded.
func (l *Limiter) Load(records []Record) error {
	l.saving.Store(true) // what is forgotten from now on, is to be forgotten there too
	now := l.clock.now()
	for _, r := range records {
		if r.Key == 0 || len(r.Data) == 0 || r.Expires*int64(time.Second) <= now {
			continue
		}
		if err := l.load(r, now); err != nil {
			return fmt.Errorf("memory: loading record %016x: %w", r.Key, err)
		}
	}
	return nil
}

func (l *Limiter) load(r Record, now int64) error {
	s := l.segment(r.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	switch r.Data[0] {
	case kindAccount:
		var e entry
		if err = e.decode(r.Data[1:]); err == nil {
			err = l.put(s, r.Key, &e, 0, now)
		}
	case kindRecord:
		var rec record
		var name string
		if rec, name, err = decodeRecord(r.Data[1:]); err == nil && rec.expires*int64(time.Second) > now {
			h := recordHash(r.Key) // its own inverse
			if err = l.putRecord(s, h, rec, now); err == nil && rec.banEnds(now) > 0 {
				s.name(h, name, now)
			}
		}
	default:
		err = errData
	}
	if errors.Is(err, ratelimit.ErrUnavailable) {
		return nil // no room
	}
	s.remark(r.Key, now)
	s.remark(recordHash(r.Key), now)
	return err
}

// remark marks the account of h if its record must be looked at.
func (s *segment) remark(h uint64, now int64) {
	if r, _ := s.record(h, now); r.pending() {
		s.mark(h)
	}
}

func (e *entry) decode(data []byte) error {
	for len(data) > 0 {
		var length, used, end int64
		if data = varints(data, &length, &used, &end); data == nil {
			return errData
		}
		if e.n == maxWindows || length < 1 || length > int64(ratelimit.MaxWindow/time.Second) ||
			used < 0 || used > ratelimit.MaxLimit || end < 0 || end > 1<<32-1 {
			return errData
		}
		window := time.Duration(length) * time.Second
		if e.n > 0 && window <= e.lengths[e.n-1] {
			return errData
		}
		e.lengths[e.n], e.began[e.n], e.end[e.n] = window, uint32(-used), end
		e.n++
	}
	if e.n == 0 {
		return errData
	}
	return nil
}

func decodeRecord(data []byte) (r record, name string, err error) {
	var strikes, level int64
	if data = varints(data, &r.first, &strikes, &level, &r.until, &r.length, &r.expires); data == nil {
		return r, "", errData
	}
	r.strikes, r.level = int(strikes), int(level)
	if !r.valid() {
		return r, "", errData
	}
	return r, string(data), nil
}

// varints reads variable-length integers from the front of data, and returns
// what is left of it, or nil if they are not there.
func varints(data []byte, into ...*int64) []byte {
	for _, n := range into {
		value, size := binary.Varint(data)
		if size <= 0 {
			return nil
		}
		*n, data = value, data[size:]
	}
	return data
}
