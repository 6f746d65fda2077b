package memory

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/fixedwindow"
)

// A record is what a subject that went on after it was limited has to its name.
// It is kept in a slot of its own, beside the account, in two words:
//
//	first (42 bits, Unix milliseconds)  level (8)  strikes (14)
//	until (32 bits, Unix seconds)       length, or since if there are strikes (32, seconds)
//
// and in place of a meter's count the Unix second from which on it means nothing.
type record struct {
	first   int64 // of the limited requests in a window, Unix milliseconds; 0: none
	strikes int
	since   int64 // Unix seconds from which the strikes decay; 0 without strikes
	level   int   // of the last ban; 0: none
	until   int64 // end of the last ban, Unix seconds
	length  int64 // of the last ban, seconds; 0 once a request after it was admitted or was a strike
	expires int64 // Unix seconds; no more than fit in 32 bits count
}

const (
	strikeBits    = 14
	levelBits     = 8
	recordWindows = 2 // words beside hash and meter
)

// recordHash is the hash under which the record of the subject h is kept. It
// leads to the same segment as h and, in its table, to a slot beside it.
func recordHash(h uint64) uint64 { return h | 1 }

// accountHash is the hash of the subject whose account or record has the hash h.
func accountHash(h uint64) uint64 { return h &^ 1 }

// read fills r, which is empty, with what a slot holds at a time: nothing once
// it has expired.
func (r *record) read(s slot, now int64) {
	if r.expires = int64(s.meter().count()); r.expires*int64(time.Second) <= now {
		r.expires = 0
		return
	}
	a, b := s.window(0), s.window(1)
	r.first = int64(a >> (levelBits + strikeBits))
	r.level = int(a >> strikeBits & (1<<levelBits - 1))
	r.strikes = int(a & (1<<strikeBits - 1))
	r.until = int64(b >> 32)
	if r.strikes > 0 {
		r.since = int64(uint32(b))
	} else {
		r.length = int64(uint32(b))
	}
}

// write puts the record into a slot that is frozen and had the meter old.
func (r *record) write(s slot, old meter) {
	s.setWindow(0, window(r.first<<(levelBits+strikeBits)|int64(r.level)<<strikeBits|int64(r.strikes)))
	s.setWindow(1, window(r.until<<32|r.since|r.length)) // one of the two is 0
	expires := uint32(min(r.expires, 1<<32-1))
	s.setMeter((newMeter(expires, int(recordShape)) | old&stored | dirty).after(old))
}

// empty reports whether the record says nothing.
func (r *record) empty() bool {
	return r.strikes == 0 && r.first == 0 && r.level == 0 && r.until == 0
}

// clear forgets the strikes, and that a ban that is over was one.
func (r *record) clear() { r.strikes, r.since, r.length = 0, 0, 0 }

// pending reports whether the next request that is admitted changes the record.
func (r *record) pending() bool { return r.strikes > 0 || r.length > 0 }

// valid reports whether every field fits into its bits.
func (r *record) valid() bool {
	fits := func(n int64, bits int) bool { return n >= 0 && n < 1<<bits }
	return fits(r.first, 42) && fits(int64(r.strikes), strikeBits) && fits(int64(r.level), levelBits) &&
		fits(r.until, 32) && fits(r.since, 32) && fits(r.length, 32) && fits(r.expires, 32) &&
		(r.strikes == 0 && r.since == 0 || r.strikes > 0 && r.length == 0)
}

// banEnds returns the end of the ban in force in Unix seconds, or 0. A clock
// that stepped back makes no ban longer than it was.
func (r *record) banEnds(now int64) int64 {
	if r.length == 0 || r.until*int64(time.Second) <= now {
		return 0
	}
	return min(r.until, fixedwindow.SecondsUp(now)+r.length)
}

// cut makes a ban no longer than it was when it began, if the clock stepped back.
func (r *record) cut(now int64) {
	if r.length > 0 {
		r.until = min(r.until, fixedwindow.SecondsUp(now)+r.length)
	}
}

// spares reports whether a request that is limited now is no strike, because
// the first one in the window that began at start was less than grace ago.
func (r *record) spares(now, start int64, grace time.Duration) bool {
	ms := now / int64(time.Millisecond)
	return r.first >= start*1000 && r.first <= ms && ms-r.first < grace.Milliseconds()
}

// strike enters a request that was limited now into the record, in a window
// that began at start, in Unix seconds. It reports whether that starts a ban.
func (r *record) strike(p ratelimit.Penalty, now, start int64) (banned bool) {
	ms := now / int64(time.Millisecond)
	if r.first < start*1000 || r.first > ms {
		r.first = ms
	}
	if r.spares(now, start, p.Grace) {
		return false
	}
	r.strikes, r.since = p.Strike(r.strikes, r.since, now/int64(time.Second))
	r.length = 0
	if r.strikes <= p.Strikes {
		return false
	}
	level := p.Level(r.level, time.Duration(now-r.until*int64(time.Second)))
	r.level = level
	r.ban(p.BanLength(level), now)
	r.expires = max(r.expires, r.until+int64(level)*int64(p.Forgive/time.Second))
	return true
}

// ban starts a ban and ends any other.
func (r *record) ban(length time.Duration, now int64) {
	r.first, r.strikes, r.since = 0, 0, 0
	r.until = fixedwindow.SecondsUp(now + int64(length))
	r.length = r.until - now/int64(time.Second)
	r.expires = max(r.expires, r.until)
}
