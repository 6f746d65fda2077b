package activity

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Seconds is how many seconds a [Snapshot] covers, with the present one, which is not
// over.
const Seconds = 60

// stripes is a power of two.
const stripes = 8

// A Counter counts decisions. [New] returns one. It is safe for concurrent use.
type Counter struct {
	now     func() time.Time
	seed    maphash.Seed
	stripes [stripes]stripe
}

// A stripe counts the subjects with certain hashes.
type stripe struct {
	mu      sync.Mutex
	seconds [Seconds]second
	_       [64]byte // keeps the locks of two stripes on different cache lines
}

// A second holds the counts of one second. It is used again after [Seconds].
type second struct {
	unix     int64 // Unix time of the second; 0: never used
	totals   [outcomes]int64
	owners   summary
	networks summary
}

// outcomes is the number of values of [ratelimit.Outcome], with that of a request that
// was not decided.
const outcomes = int(ratelimit.Suspended) + 1

// New returns a Counter without counts. The clock is usually [time.Now].
func New(now func() time.Time) *Counter {
	return &Counter{now: now, seed: maphash.MakeSeed()}
}

// Count counts one decision about a subject, which is a network or an owner. A request
// that could not be decided has the zero Outcome, and counts only in the sums.
func (c *Counter) Count(subject string, network bool, o ratelimit.Outcome) {
	if int(o) >= outcomes {
		o = 0
	}
	unix := c.now().Unix()
	hash := maphash.String(c.seed, subject)
	s := &c.stripes[hash%stripes]
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.at(unix)
	now.totals[o]++
	if o == 0 {
		return
	}
	if network {
		now.networks.count(hash, subject, o == ratelimit.Allowed)
	} else {
		now.owners.count(hash, subject, o == ratelimit.Allowed)
	}
}

// at returns the counts of a second. They are empty if the place last held another
// second, earlier or, after a step of the clock, later.
func (s *stripe) at(unix int64) *second {
	now := &s.seconds[uint64(unix)%Seconds]
	if now.unix != unix {
		now.unix = unix
		now.totals = [outcomes]int64{}
		now.owners.clear()
		now.networks.clear()
	}
	return now
}

// places is how many subjects a summary holds.
const places = 32

// A summary counts the most frequent of any number of subjects: the Space-Saving
// algorithm. The zero summary is empty.
type summary struct {
	used   int
	hashes [places]uint64 // of the subjects; apart from them, so that a search reads little memory
	counts [places]count
}

// A count is what is known about one subject.
type count struct {
	subject         string
	allowed, denied uint32 // since the subject has this place
	inherited       uint32 // the sum of the subjects that had the place before
}

// rank is at least the true count of the subject.
func (c *count) rank() uint32 { return c.inherited + c.allowed + c.denied }

// count counts one decision about a subject. A subject without a place gets a free one
// or that of the subject with the lowest rank, and inherits the rank: before, it may
// have been counted up to that often and lost its place.
func (s *summary) count(hash uint64, subject string, allowed bool) {
	i := s.find(hash, subject)
	if i < 0 {
		i = s.place()
		s.hashes[i] = hash
		s.counts[i] = count{subject: subject, inherited: s.counts[i].rank()}
	}
	if allowed {
		s.counts[i].allowed++
	} else {
		s.counts[i].denied++
	}
}

// find returns the place of a subject, or -1.
func (s *summary) find(hash uint64, subject string) int {
	for i, h := range s.hashes[:s.used] {
		if h == hash && s.counts[i].subject == subject {
			return i
		}
	}
	return -1
}

// place returns a free place, or the one with the lowest rank.
func (s *summary) place() int {
	if s.used < places {
		s.used++
		return s.used - 1
	}
	lowest := 0
	for i := range s.counts {
		if s.counts[i].rank() < s.counts[lowest].rank() {
			lowest = i
		}
	}
	return lowest
}

// clear empties the summary and drops the names.
func (s *summary) clear() {
	clear(s.counts[:s.used])
	s.used = 0
}
