package api

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A cursor says where the next page of a list begins:
//
//	version   1 byte, 1
//	filter    1 byte, the index in cursorFilters
//	after     8 bytes, big-endian: the ID of the last pet of the previous page
//	checksum  4 bytes, CRC-32 of the above
//
// in base64url without padding. The checksum detects truncated and mistyped cursors. A
// signature is not needed: a forged cursor only leads to pages that the same key may
// read anyway. So replicas need no shared secret.
const (
	cursorVersion = 1
	cursorLen     = 14
)

var (
	cursorFilters  = []store.Status{"", store.Available, store.Pending, store.Sold}
	cursorEncoding = base64.RawURLEncoding.Strict()
)

func encodeCursor(filter store.Status, after int64) string {
	b := make([]byte, 0, cursorLen)
	b = append(b, cursorVersion, byte(slices.Index(cursorFilters, filter)))
	b = binary.BigEndian.AppendUint64(b, uint64(after))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return cursorEncoding.EncodeToString(b)
}

// decodeCursor returns false for any text that encodeCursor does not return for this
// filter.
func decodeCursor(text string, filter store.Status) (after int64, ok bool) {
	if len(text) != cursorEncoding.EncodedLen(cursorLen) {
		return 0, false
	}
	b, err := cursorEncoding.DecodeString(text)
	if err != nil || len(b) != cursorLen { // shorter if text contains line ends, which are skipped
		return 0, false
	}
	payload, sum := b[:cursorLen-4], b[cursorLen-4:]
	if binary.BigEndian.Uint32(sum) != crc32.ChecksumIEEE(payload) {
		return 0, false
	}
	after = int64(binary.BigEndian.Uint64(payload[2:]))
	if payload[0] != cursorVersion || int(payload[1]) != slices.Index(cursorFilters, filter) || after < 1 {
		return 0, false
	}
	return after, true
}
