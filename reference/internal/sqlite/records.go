package sqlite

import (
	"encoding/binary"
	"math"

	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// headSize is the size of a record without its data: the key, the expiry, and the length
// of the data.
const headSize = 8 + 4 + 4

// appendRecords appends records to a blob, as the schema describes it.
func appendRecords(b []byte, records []memory.Record) []byte {
	for _, r := range records {
		b = binary.BigEndian.AppendUint64(b, r.Key)
		b = binary.BigEndian.AppendUint32(b, uint32(min(max(r.Expires, 0), math.MaxUint32)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(r.Data)))
		b = append(b, r.Data...)
	}
	return b
}

// damaged is a record that no engine can read. It stands for the rest of a blob that is
// damaged.
var damaged = memory.Record{Key: math.MaxUint64, Expires: math.MaxUint32, Data: []byte{0}}

// parseRecords returns the records of a blob, which they share, except those with keys
// that skip reports.
func parseRecords(b []byte, skip func(key uint64) bool) []memory.Record {
	records := make([]memory.Record, 0, len(b)/32)
	for len(b) > 0 {
		if len(b) < headSize {
			return append(records, damaged)
		}
		r := memory.Record{Key: binary.BigEndian.Uint64(b), Expires: int64(binary.BigEndian.Uint32(b[8:]))}
		end := headSize + int64(binary.BigEndian.Uint32(b[12:]))
		if end > int64(len(b)) {
			return append(records, damaged)
		}
		r.Data, b = b[headSize:end:end], b[end:]
		if !skip(r.Key) {
			records = append(records, r)
		}
	}
	return records
}
