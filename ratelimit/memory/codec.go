package memory

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// The first byte of a Record's Data tells what follows, in variable-length
// integers: for an account the length of each window, the smallest limit that it
// was held against, its use and its end; for strikes and bans the fields of the
// record, and the name of the subject if it has a ban.
const (
	kindAccount = 3
	kindRecord  = 4
)

var errData = errors.New("the data is damaged, or from another version")

func (l *Limiter) encodeAccount(slot slot, m meter) []byte {
	shape := l.shapes.get(m.shape())
	b := []byte{kindAccount}
	for i := range shape.len() {
		w := slot.window(i)
		b = binary.AppendVarint(b, int64(shape.length(i)/time.Second))
		b = binary.AppendVarint(b, shape.limit(i))
		b = binary.AppendVarint(b, w.used(m.count()))
		b = binary.AppendVarint(b, w.end())
	}
	return b
}

func (a *account) decode(data []byte) error {
	const longest = int64(ratelimit.MaxWindow / time.Second)
	for len(data) > 0 {
		var length, limit, used, end int64
		if data = varints(data, &length, &limit, &used, &end); data == nil || a.n == maxWindows ||
			length < 1 || length > longest || limit < 1 || limit > ratelimit.MaxLimit ||
			used < 0 || used > ratelimit.MaxLimit || end < 0 || end > 1<<32-1 {
			return errData
		}
		window := time.Duration(length) * time.Second
		if a.n > 0 && window <= a.lengths[a.n-1] {
			return errData
		}
		a.lengths[a.n], a.limits[a.n], a.began[a.n], a.end[a.n] = window, roundLimit(limit), uint32(-used), end
		a.n++
	}
	if a.n == 0 {
		return errData
	}
	return nil
}

func (r *record) encode(name string) []byte {
	b := []byte{kindRecord}
	for _, n := range []int64{r.first, int64(r.strikes), int64(r.level), r.until, r.since, r.length, r.expires} {
		b = binary.AppendVarint(b, n)
	}
	return append(b, name...)
}

func (r *record) decode(data []byte) (name string, err error) {
	var strikes, level int64
	if data = varints(data, &r.first, &strikes, &level, &r.until, &r.since, &r.length, &r.expires); data == nil {
		return "", errData
	}
	r.strikes, r.level = int(min(strikes, 1<<strikeBits)), int(min(level, 1<<levelBits))
	if !r.valid() {
		return "", errData
	}
	return string(data), nil
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
