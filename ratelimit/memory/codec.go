package memory

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
)

// encode makes a record of a slot of the segment, which is locked. If a smooth quota is
// charged meanwhile, the record may have a part of that charge. The slot is then marked as
// changed again, so that the next Save has all of it.
func (s *segment) encode(slot slot, m meter) Record {
	key := slot.hash()
	rec := Record{Key: key, Expires: fixedwindow.Seconds(s.expiry(slot, m))}
	if m.isRecord() {
		var r record
		r.read(slot, 0)
		rec.Data = r.encode(s.key.dataHead(key), s.names.all[accountHash(key)])
	} else {
		var a account
		a.read(s.layouts.get(m.layout()), slot, m)
		rec.Data = a.encode(s.key.dataHead(key))
	}
	return rec
}

// The first byte of a Record's Data is its kind. Two bytes follow that depend on the key and
// the secret, by which an engine with another secret knows the record as not its own. Then
// come variable-length integers: of an account the length, limit, used and end of each
// window, as a window has them; of a record its fields, and then the name of the subject
// if it has a ban.
const (
	kindAccount = 5
	kindRecord  = 6
)

var (
	errData   = errors.New("the data is damaged, or another version saved it")
	errSecret = errors.New("an engine with another secret saved it: Options.Secret must be what its Secret method returned")
)

// dataHead returns what the Data of a record with the key begins with.
func (k *hashKey) dataHead(key uint64) []byte {
	kind := byte(kindAccount)
	if key != accountHash(key) {
		kind = kindRecord
	}
	b := append(make([]byte, 0, 40), kind) // enough for two windows
	return binary.LittleEndian.AppendUint16(b, uint16(fold(key^k[1], k[2])))
}

func (a *account) encode(b []byte) []byte {
	for _, w := range a.windows() {
		for _, n := range []int64{int64(w.length / time.Second), w.limit, w.used, w.end} {
			b = binary.AppendVarint(b, n)
		}
	}
	return b
}

func decodeAccount(data []byte) (a account, err error) {
	const longest = int64(fixedwindow.MaxLength / time.Second)
	for len(data) > 0 || a.n == 0 {
		var length, limit, used, end int64
		if data = varints(data, &length, &limit, &used, &end); data == nil || a.n == maxWindows ||
			length == 0 || length < -longest || length > longest || limit < 1 || limit > noLimit ||
			used < 0 || used > fixedwindow.MaxUnits || end < 0 || end > 1<<32-1 || length < 0 && end == 0 && used > 0 {
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

func (r *record) encode(b []byte, name string) []byte {
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
