package memory

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/plan"
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

// Save calls write with what changed since its last call, or since [Limiter.Load], in
// portions of a few thousand records. If it is called once a second, a process that is killed
// loses at most the last second of usage. Store records in their order, since a key may be
// forgotten and come back. If write fails, Save stops with its error, and the next call
// saves what was not written.
//
// The function write may keep the Data of a record, but not the slice of records,
// which is used again. Save holds no lock while write runs. It locks one segment of
// some thousand subjects at a time, for about a tenth of a microsecond for each
// record. Do not call it concurrently.
func (l *Limiter) Save(write func([]Record) error) error {
	for batch := range l.portions(true) {
		if err := write(batch); err != nil {
			l.markUnsaved(batch)
			return fmt.Errorf("memory: saving state: %w", err)
		}
	}
	return nil
}

// portions yields what Save writes; or the records of all keys, which replace all that Save has
// passed on so far. The next Save still passes on what has changed since the last one.
func (l *Limiter) portions(changed bool) iter.Seq[[]Record] {
	return func(yield func([]Record) bool) {
		var batch []Record
		for i := range l.segments {
			batch = l.segments[i].appendRecords(batch, changed)
			if len(batch) >= saveBatch || i == len(l.segments)-1 && len(batch) > 0 {
				if !yield(batch) {
					return
				}
				batch = batch[:0]
			}
		}
	}
}

// appendRecords appends all records, the end of which Save must then report; or those that
// changed alone, and marks them as saved.
func (s *segment) appendRecords(records []Record, changed bool) []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, saved := s.table.Load(), meter(0)
	if changed {
		for _, key := range s.forgotten {
			if _, found := t.find(key); !found { // otherwise it came back, and Load may have loaded that
				records = append(records, Record{Key: key})
			}
		}
		s.forgotten, saved = nil, dirty
	}
	for i := range t.slots {
		slot := t.slot(i)
		if slot.hash() != 0 && (!changed || slot.meter().has(dirty)) {
			records = append(records, s.encode(slot, slot.mark(stored, saved)))
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
			t.slot(i).mark(dirty|stored, 0) // the store may have an earlier record
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
	s.fit(uint64(len(records)), 0)
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
	case len(r.Data) == 0, unixSecond(r.Expires).instant().add(keepExpired) <= s.now:
		s.drop(r.Key) // an earlier record may have loaded it, also one that expires later
		s.freeze()
		s.unfreeze() // the account has the end of a ban too
		return nil
	case r.Data[0] != head[0]:
		return errData
	case !bytes.HasPrefix(r.Data, head):
		return errSecret
	case r.Key == s.hash:
		return s.loadAccount(r.Data[len(head):])
	}
	return s.loadConduct(r.Data[len(head):])
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

func (s *subject) loadConduct(data []byte) error {
	c, name, reason, err := decodeConduct(data)
	if err != nil || c.expires.instant().add(keepExpired) <= s.now {
		return err
	}
	s.freeze()
	defer s.unfreeze()
	if err := s.putConduct(c, stored); err != nil {
		return err
	}
	s.names.keep(s.hash, name, reason)
	return nil
}

// encode makes a record of a slot of the segment, which is locked. If a smooth quota is
// charged meanwhile, the record may have a part of that charge. The slot is then marked as
// changed again, so that the next Save has all of it.
func (s *segment) encode(slot slot, m meter) Record {
	key := slot.hash()
	rec := Record{Key: key, Expires: int64(s.expiry(slot, m).second())}
	if m.isConduct() {
		var c conduct
		c.read(slot, 0)
		rec.Data = c.encode(s.key.dataHead(key), cmp.Or(s.names.all[accountHash(key)], new(named)))
	} else {
		var a account
		a.read(&s.layouts.get(m.layout()).layout, slot, m.withCount())
		rec.Data = a.encode(s.key.dataHead(key))
	}
	return rec
}

// The first byte of a Record's Data says what it is about. Two bytes follow that depend on the key and
// the secret, by which an engine with another secret knows the record as not its own. Then
// come variable-length integers: of an account the kind in seconds, limit, used and end of each
// window, as a window has them; of conduct its fields, then the length of the reason and the
// reason if the ban has one of its own, and then the name of the subject if it has a ban. A
// window that has not begun has the limit savedNotBegun. A window with this number as its limit
// has one more, which decode rounds down again.
const (
	dataAccount   = 5
	dataConduct   = 6
	savedNotBegun = 1 << 32
)

var (
	errData   = errors.New("the data is damaged, or another version saved it")
	errSecret = errors.New("an engine with another secret saved it: Options.Secret must be what its Secret method returned")
)

// dataHead returns what the Data of a record with the key begins with.
func (k *hashKey) dataHead(key uint64) []byte {
	first := byte(dataAccount)
	if key != accountHash(key) {
		first = dataConduct
	}
	b := append(make([]byte, 0, 40), first) // enough for two windows
	return binary.LittleEndian.AppendUint16(b, uint16(fold(key^k[1], k[2])))
}

func (a *account) encode(b []byte) []byte {
	for _, w := range a.windows() {
		limit := w.limit
		if !w.begun() {
			limit = savedNotBegun
		} else if limit == savedNotBegun {
			limit++
		}
		for _, n := range []int64{w.kind.Seconds(), limit, w.used, int64(w.end)} {
			b = binary.AppendVarint(b, n)
		}
	}
	return b
}

func decodeAccount(data []byte) (a account, err error) {
	for len(data) > 0 || a.n == 0 {
		var w window
		data = w.decode(data)
		if data == nil || a.n == maxWindows || a.n > 0 && w.kind <= a.all[a.n-1].kind {
			return a, errData
		}
		a.all[a.n] = w
		a.n++
	}
	return a, nil
}

// decode reads a window from the front of data, and returns what is left of it, or nil if there
// is none.
func (w *window) decode(data []byte) []byte {
	const longest = int64(fixedwindow.MaxLength / time.Second)
	between := func(n, least, most int64) bool { return n >= least && n <= most }
	var kind, limit, used, end int64
	data = varints(data, &kind, &limit, &used, &end)
	if data == nil || kind == 0 || !between(kind, -longest, longest) || !between(limit, 1, fixedwindow.MaxUnits) ||
		!between(used, 0, fixedwindow.MaxUnits) || !between(end, 0, 1<<32-1) {
		return nil
	}
	*w = window{kind: fixedwindow.KindOf(kind), limit: roundLimit(limit), used: used, end: unixSecond(end)}
	if limit == savedNotBegun {
		w.limit = notBegun
	}
	if w.isSmooth() && (w.end == 0 && w.used > 0 || w.used >= 1<<32) { // no time is before 1970, or by more rounded up
		return nil
	}
	return data
}

func (c *conduct) encode(b []byte, of *named) []byte {
	for _, n := range []int64{int64(c.first), int64(c.strikes), int64(c.level), int64(c.until), int64(c.since), int64(c.banBits()), int64(c.expires)} {
		b = binary.AppendVarint(b, n)
	}
	if c.cause == byHandWithText {
		b = append(binary.AppendVarint(b, int64(len(of.reason))), of.reason...)
	}
	return append(b, of.name...)
}

func decodeConduct(data []byte) (c conduct, name, reason string, err error) {
	var first, strikes, level, until, since, ban, expires int64
	data = varints(data, &first, &strikes, &level, &until, &since, &ban, &expires)
	c.first, c.until, c.since, c.expires = unixMilli(first), unixSecond(until), unixSecond(since), unixSecond(expires)
	c.strikes, c.level = int(min(strikes, 1<<strikeBits)), int(min(level, 1<<levelBits))
	c.setBanBits(uint32(ban))
	if data == nil || ban != int64(c.banBits()) || !c.valid() {
		return c, "", "", errData
	}
	if c.cause == byHandWithText {
		var n int64
		if data = varints(data, &n); data == nil || n < 0 || n > min(plan.MaxReason, int64(len(data))) {
			return c, "", "", errData
		}
		reason, data = string(data[:n]), data[n:]
	}
	return c, string(data), reason, nil
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
