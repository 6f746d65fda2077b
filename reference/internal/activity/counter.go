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
