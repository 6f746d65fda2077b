package api

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/reference/internal/openapi"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// listParameters are the query parameters of listPets.
var listParameters = []string{"limit", "status", "cursor"}

// parseListQuery reads the query of listPets. Its errors are 400.
func parseListQuery(raw string, limit openapi.Range) (store.ListQuery, error) {
	q := store.ListQuery{Limit: limit.Default}
	if raw == "" {
		return q, nil
	}
	values, err := parseQuery(raw)
	if err != nil {
		return q, err
	}
	if text, ok := values["limit"]; ok {
		n, ok := parseInt(text, int64(limit.Min), int64(limit.Max))
		if q.Limit = int(n); !ok {
			return q, invalidParameter(fmt.Sprintf("The parameter limit must be an integer from %d to %d.", limit.Min, limit.Max))
		}
	}
	if text, ok := values["status"]; ok {
		// A copy, because pages are kept by their queries, and text would keep the whole
		// target of the request in memory.
		if q.Status = store.Status(strings.Clone(text)); !q.Status.Valid() {
			return q, invalidParameter(fmt.Sprintf("The parameter status must be one of %s, %s, %s.", store.Available, store.Pending, store.Sold))
		}
	}
	if text, ok := values["cursor"]; ok {
		if q.After, ok = decodeCursor(text, q.Status); !ok {
			return q, invalidParameter("The parameter cursor is not valid. Take it from the Link header of the previous page, and send the same status with it.")
		}
	}
	return q, nil
}

// parseQuery returns the parameters of listPets that are present.
//
// [url.URL.Query] drops malformed pairs without an error, and with them a filter that
// the client relies on.
func parseQuery(raw string) (map[string]string, error) {
	all, err := url.ParseQuery(raw)
	if err != nil {
		return nil, invalidParameter("The query string is malformed: it contains a semicolon or invalid percent-encoding.")
	}
	for name, values := range all {
		for _, text := range append(values, name) {
			if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
				return nil, invalidParameter("The query string must be UTF-8 without NUL characters.")
			}
		}
	}
	known := make(map[string]string, len(listParameters))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		values := all[name]
		base, _, isList := strings.Cut(name, "[")
		switch {
		case !slices.Contains(listParameters, base): // ignored
		case isList:
			// Some clients send lists as status[]=sold. Ignoring it like an unknown
			// parameter would return pets that the client did not ask for.
			return nil, invalidParameter("The parameter " + base + " takes one value, not a list.")
		case len(values) > 1:
			return nil, invalidParameter("The parameter " + name + " must not be repeated.")
		default:
			known[name] = values[0]
		}
	}
	return known, nil
}

// parseInt parses a positive decimal integer in its canonical form: digits without leading
// zeros. [strconv.ParseInt] accepts +5 and 05 too.
func parseInt(text string, lowest, highest int64) (n int64, ok bool) {
	const maxDigits = 19
	if text == "" || len(text) > maxDigits || text[0] < '1' || text[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && lowest <= n && n <= highest
}

func invalidParameter(message string) *apierror.Error {
	return apierror.New(http.StatusBadRequest, "invalid_parameter", message)
}

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
