package memory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/fixedwindow"
)

// A Record is a part of an engine's state, for a row of a database or a line of a
// file. An engine with another secret loads it, but counts it for no subject.
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
// was not written. What [Limiter.Load] loaded counts as changed.
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

// appendChanges appends the records of what changed, and marks it as saved.
func (s *segment) appendChanges(batch []Record) []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.forgotten {
		batch = append(batch, Record{Key: key})
	}
	s.forgotten = nil
	var names map[uint64]string
	t := s.table.Load()
	for i := range t.slots {
		slot := t.slot(i)
		if slot.hash() == 0 || !slot.meter().has(dirty) {
			continue
		}
		m := slot.markSaved()
		rec := Record{Key: slot.hash(), Expires: fixedwindow.Seconds(s.expiry(slot, m))}
		if m.isRecord() {
			var r record
			r.read(slot, 0)
			if names == nil && r.length > 0 {
				names = s.names.index()
			}
			rec.Data = r.encode(names[accountHash(rec.Key)])
		} else {
			var a account
			a.read(s.layouts.get(m.layout()), slot, m)
			rec.Data = a.encode()
		}
		batch = append(batch, rec)
	}
	return batch
}

// markUnsaved makes the next Save save the records again.
func (l *Limiter) markUnsaved(batch []Record) {
	for _, r := range batch {
		s := l.lockKey(r.Key)
		t := s.table.Load()
		if i, found := t.find(r.Key); found {
			slot := t.slot(i)
			m := slot.freeze()
			slot.setMeter((m | dirty).after(m))
		} else if r.Data == nil {
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
// key the last one counts, also if it says that the key was forgotten. Load skips
// records that expired more than a minute ago, and those for which there is no room.
// Call it before the engine decides anything. An error names a record with damaged
// data; the records before it have been loaded.
func (l *Limiter) Load(records []Record) error {
	for _, r := range records {
		if r.Key < 2 {
			continue
		}
		if err := l.load(r); err != nil && !errors.Is(err, ratelimit.ErrUnavailable) {
			return fmt.Errorf("memory: loading record %016x: %w", r.Key, err)
		}
	}
	return nil
}

func (l *Limiter) load(r Record) error {
	s := l.lockKey(r.Key)
	defer s.unlock()
	switch isRecord := r.Key != s.hash; {
	case len(r.Data) == 0:
		s.drop(r.Key)
	case r.Expires*int64(time.Second)+keepExpired <= s.now:
	case r.Data[0] == kindAccount && !isRecord:
		return s.loadAccount(r.Data[1:])
	case r.Data[0] == kindRecord && isRecord:
		return s.loadRecord(r.Data[1:])
	default:
		return errData
	}
	return nil
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
	if name != "" { // a ban that is long over has none
		s.keepName(name)
	}
	return nil
}

// The first byte of a Record's Data is its kind. Variable-length integers follow:
// of an account the length, limit, used and end of each window; of a record its
// fields, and then the name of the subject if it has a ban.
const (
	kindAccount = 3
	kindRecord  = 4
)

var errData = errors.New("the data is damaged, or another version saved it")

func (a *account) encode() []byte {
	b := []byte{kindAccount}
	for _, w := range a.windows() {
		for _, n := range []int64{int64(w.length / time.Second), w.limit, w.used, w.end} {
			b = binary.AppendVarint(b, n)
		}
	}
	return b
}

func decodeAccount(data []byte) (a account, err error) {
	const longest = int64(ratelimit.MaxWindow / time.Second)
	for len(data) > 0 || a.n == 0 {
		var length, limit, used, end int64
		if data = varints(data, &length, &limit, &used, &end); data == nil || a.n == maxWindows ||
			length < 1 || length > longest || limit < 1 || limit > ratelimit.MaxLimit ||
			used < 0 || used > ratelimit.MaxLimit || end < 0 || end > 1<<32-1 {
			return a, errData
		}
		w := window{length: time.Duration(length) * time.Second, limit: roundLimit(limit), used: used, end: end}
		if a.n > 0 && w.length <= a.all[a.n-1].length {
			return a, errData
		}
		a.all[a.n] = w
		a.n++
	}
	return a, nil
}

func (r *record) encode(name string) []byte {
	b := []byte{kindRecord}
	for _, n := range []int64{r.first, int64(r.strikes), int64(r.level), r.until, r.since, r.length, r.expires} {
		b = binary.AppendVarint(b, n)
	}
	return append(b, name...)
}

func decodeRecord(data []byte) (r record, name string, err error) {
	var strikes, level int64
	data = varints(data, &r.first, &strikes, &level, &r.until, &r.since, &r.length, &r.expires)
	r.strikes, r.level = int(min(strikes, 1<<strikeBits)), int(min(level, 1<<levelBits))
	if data == nil || !r.valid() {
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
