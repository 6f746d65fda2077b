package redislimit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// What the script says of a subject.
const (
	done       = 'a'
	denied     = 'd'
	spared     = 'g'
	needsIndex = 'i'
	notOurs    = 'e'
)

// Sizes of what is in a reply, in bytes.
const (
	countsSize = 4
	windowSize = 12
	recordSize = 21
)

// unavailable returns err as the engine's.
func unavailable(err error) error {
	return fmt.Errorf("redislimit: %w: %w", ratelimit.ErrUnavailable, err)
}

// maxWindows is how many windows of one subject the script counts at once: those
// of its plan, and those of a plan that it had before.
const maxWindows = 2 * ratelimit.MaxQuotas

var errReply = errors.New("the script's reply cannot be read")

// foreign says that a key holds what the script has not written.
func foreign(key string) error {
	return fmt.Errorf("key %q holds something that redislimit did not write: delete it, or use another Options.Prefix", key)
}

// cutTime reads the server's time, in Unix nanoseconds, from the front of a reply.
func cutTime(b string) (nanos int64, rest string, err error) {
	secs, rest, _ := strings.Cut(b, " ")
	micros, rest, _ := strings.Cut(rest, " ")
	s, err := strconv.ParseUint(secs, 10, 32)
	us, err2 := strconv.ParseUint(micros, 10, 32)
	if err != nil || err2 != nil || us >= 1_000_000 {
		return 0, "", errReply
	}
	return int64(s)*int64(time.Second) + int64(us)*int64(time.Microsecond), rest, nil
}

// cutEntry cuts what is said of one subject from the front of a reply.
func cutEntry(b string) (entry, rest string, err error) {
	if b == "" {
		return "", "", errReply
	}
	size := 1
	switch b[0] {
	case needsIndex, notOurs:
		return b[:size], b[size:], nil
	case done:
	case denied, spared:
		size += countsSize
	default:
		return "", "", errReply
	}
	if len(b) <= size {
		return "", "", errReply
	}
	size += 1 + int(b[size])
	if len(b) < size {
		return "", "", errReply
	}
	return b[:size], b[size:], nil
}

// A window is one in which something was used.
type window struct {
	length time.Duration
	end    int64 // Unix seconds
	used   int64
}

// A subject is what a value says.
type subject struct {
	n       int
	windows [maxWindows]window
	record
}

// A record is what a subject that was limited has to its name. The script says
// what it means.
type record struct {
	first   int64 // Unix milliseconds
	strikes int
	level   int
	ends    int64 // Unix seconds
	since   int64 // Unix seconds; 0 without strikes
	length  int64 // seconds; 0 with strikes
	expires int64 // Unix seconds
}

// readSubject reads a value.
func readSubject(b string) (s subject, err error) {
	windows := b
	if len(b)%windowSize != 0 {
		if len(b) < recordSize {
			return s, unavailable(errReply)
		}
		windows, b = b[:len(b)-recordSize], b[len(b)-recordSize:]
		s.record = record{
			first:   u32(b)<<16 | u16(b[4:]),
			strikes: int(u16(b[6:])),
			level:   int(b[8]),
			ends:    u32(b[9:]),
			since:   u32(b[13:]),
			expires: u32(b[17:]),
		}
		if s.strikes == 0 {
			s.since, s.length = 0, s.since
		}
	}
	s.n = len(windows) / windowSize
	if len(windows)%windowSize != 0 || s.n > maxWindows {
		return s, unavailable(errReply)
	}
	counters := windows[8*s.n:]
	for i := range s.n {
		length, end := u32(windows[8*i:]), u32(windows[8*i+4:])
		s.windows[i] = window{time.Duration(length) * time.Second, end, u32(counters[4*i:])}
	}
	return s, nil
}

// u16 and u32 read the number at the front of b.
func u16(b string) int64 { return int64(b[0])<<8 | int64(b[1]) }
func u32(b string) int64 { return u16(b)<<16 | u16(b[2:]) }
