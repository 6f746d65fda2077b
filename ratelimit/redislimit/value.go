package redislimit

import (
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

const (
	windowSize = 12                   // bytes
	recordSize = 21                   // bytes
	maxWindows = 2 * engine.MaxQuotas // of one subject: of its plan, and of an earlier one
)

// A value is what Redis keeps of a subject.
type value struct {
	n       int
	windows [maxWindows]window
	record
}

// A window is one that has begun, or a bucket that is not full.
type window struct {
	length    time.Duration
	endSecond int64 // Unix; of a bucket when it is full, rounded up
	used      int64 // units; of a bucket by how much that is rounded up, 2⁻³² seconds
}

// A record is kept of a subject that was limited or banned.
type record struct {
	firstMilli   int64 // of the first limited request in its window, Unix
	strikes      int
	level        int     // of the last ban
	endSecond    int64   // of the last ban, Unix
	sinceSecond  int64   // from when the strikes decay, Unix; 0 without strikes
	banSeconds   int64   // how long the last ban is; 0 with strikes
	expirySecond int64   // Unix
	reason       *string // of the last ban
}

// byHand is added to the length of a ban that was made by hand.
const byHand = 1 << 31

// value reads the subject's value.
func (a *answer) value() (v value, err error) {
	if a.letter == needsIndex || a.letter == unknown || a.letter == wrongIndex {
		return v, unavailable(errReply)
	}
	b, windows := a.bytes, a.bytes
	if len(b)%windowSize != 0 {
		if len(b) < recordSize {
			return v, unavailable(errReply)
		}
		windows, b = b[:len(b)-recordSize], b[len(b)-recordSize:]
		v.record = record{
			firstMilli:   u32(b)<<16 | u16(b[4:]),
			strikes:      int(u16(b[6:])),
			level:        int(b[8]),
			endSecond:    u32(b[9:]),
			expirySecond: u32(b[17:]),
		}
		switch sinceOrLength := u32(b[13:]); v.strikes {
		case 0:
			v.banSeconds, v.reason = sinceOrLength%byHand, a.banReason(sinceOrLength >= byHand)
		default:
			v.sinceSecond = sinceOrLength
		}
	}
	n := len(windows) / windowSize
	if len(windows)%windowSize != 0 {
		return v, unavailable(errReply)
	}
	counters := windows[8*n:]
	for i := range n {
		length, end, used := u32(windows[8*i:]), u32(windows[8*i+4:]), u32(counters[4*i:])
		if length >= wideLength {
			v.widen(kindOf(length-wideLength), used)
			continue
		}
		if v.n == maxWindows {
			return v, unavailable(errReply)
		}
		v.windows[v.n] = window{kindOf(length), end, used}
		v.n++
	}
	if a.letter == skipped {
		v.expire(fixedwindow.Seconds(a.nanos))
	}
	return v, nil
}

// Decisions point to the reason of their ban.
var byStrikes, byOperator = engine.ReasonStrikes, engine.ReasonByHand

func (a *answer) banReason(byHand bool) *string {
	switch {
	case !byHand:
		return &byStrikes
	case a.reason == "":
		return &byOperator
	}
	return &a.reason
}

// full returns when a bucket is full.
func (w *window) full() gcra.Time { return gcra.Of(w.endSecond, gcra.Fraction(w.used)) }

// widen adds so many times 2³² units to the window of a length.
func (v *value) widen(length time.Duration, used int64) {
	for i := range v.windows[:v.n] {
		if v.windows[i].length == length {
			v.windows[i].used += used << 32
		}
	}
}

// expire drops what is over at a time: a subject that was not charged keeps it.
func (v *value) expire(nowSecond int64) {
	kept := 0
	for _, w := range v.windows[:v.n] {
		if w.endSecond > nowSecond {
			v.windows[kept] = w
			kept++
		}
	}
	v.n = kept
	if v.expirySecond <= nowSecond {
		v.record = record{}
	}
}
