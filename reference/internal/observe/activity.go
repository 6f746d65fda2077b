package observe

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// ActivitySeconds is how many seconds an [ActivitySnapshot] covers, with the present one,
// which is not over.
const ActivitySeconds = 60

// stripes is a power of two.
const stripes = 8

// An Activity counts the decisions of the last 60 seconds by owner and by network, so that
// an operator sees which clients are busy now. [NewActivity] returns one. It is safe for
// concurrent use.
//
// The sums of all decisions are exact. The counts of one subject are never too high. They
// are exact as long as few subjects are active at once. Under a flood of new subjects, what
// a subject is short of in a second is at most about 1/256 of all decisions about owners, or
// about networks: each second is counted in 8 stripes, to which subjects are assigned by a
// random hash, and each stripe holds 32 owners and 32 networks.
//
// It takes about 1.3 MB, whatever happens, and the names of the subjects that it holds.
type Activity struct {
	now     func() time.Time
	seed    maphash.Seed
	stripes [stripes]stripe
}

// A stripe counts the subjects with certain hashes.
type stripe struct {
	mu      sync.Mutex
	seconds [ActivitySeconds]second
	_       [64]byte // keeps the locks of two stripes on different cache lines
}

// A second holds the counts of one second. It is used again after ActivitySeconds.
type second struct {
	unix     int64 // Unix time of the second; 0: never used
	totals   [outcomes]int64
	owners   summary
	networks summary
}

// outcomes is the number of values of [ratelimit.Outcome], with that of a request that
// was not decided.
const outcomes = int(ratelimit.Suspended) + 1

// NewActivity returns an Activity without counts. The clock is usually [time.Now].
func NewActivity(now func() time.Time) *Activity {
	return &Activity{now: now, seed: maphash.MakeSeed()}
}

// Count counts one decision about a subject, which is a network or an owner. A request
// that could not be decided has the zero Outcome, and counts only in the sums.
func (a *Activity) Count(subject string, network bool, o ratelimit.Outcome) {
	if int(o) >= outcomes {
		o = 0
	}
	unix := a.now().Unix()
	hash := maphash.String(a.seed, subject)
	s := &a.stripes[hash%stripes]
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
	now := &s.seconds[uint64(unix)%ActivitySeconds]
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

// A summary counts the most frequent of any number of subjects: the Space-Saving algorithm
// of Metwally, Agrawal and El Abbadi (2005). The zero summary is empty.
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

// An ActivitySnapshot is what happened in the last [ActivitySeconds].
type ActivitySnapshot struct {
	Decisions

	// PerSecond is the number of decisions in one second, on average over the last five
	// whole seconds.
	PerSecond float64

	// Owners and Networks are the subjects with the most decisions, the busiest first.
	Owners, Networks []Use
}

// Decisions are the numbers of decisions by [ratelimit.Outcome].
type Decisions struct {
	Allowed   int64 `json:"allowed"`
	Limited   int64 `json:"limited"`
	Banned    int64 `json:"banned"`
	Suspended int64 `json:"suspended"`
	Undecided int64 `json:"undecided"` // the engine failed
}

// A Use is how often a subject was allowed and denied (limited, banned or suspended).
type Use struct {
	Subject         string // such as "owner:ada"
	Allowed, Denied int64
}

// rateSeconds is how many whole seconds PerSecond averages.
const rateSeconds = 5

// Snapshot returns the counts, with at most n owners and n networks.
func (a *Activity) Snapshot(n int) ActivitySnapshot {
	now := a.now().Unix()
	var totals [outcomes]int64
	recent, owners, networks := int64(0), map[string]Use{}, map[string]Use{}
	for i := range a.stripes {
		for j := range ActivitySeconds {
			second := a.stripes[i].copyOf(j)
			if second.unix <= now-ActivitySeconds || second.unix > now {
				continue // too old, or the clock has stepped back
			}
			for o, count := range second.totals {
				totals[o] += count
				if second.unix >= now-rateSeconds && second.unix < now {
					recent += count
				}
			}
			second.owners.addTo(owners)
			second.networks.addTo(networks)
		}
	}
	return ActivitySnapshot{
		Decisions: Decisions{
			Allowed: totals[ratelimit.Allowed], Limited: totals[ratelimit.Limited], Banned: totals[ratelimit.Banned],
			Suspended: totals[ratelimit.Suspended], Undecided: totals[0],
		},
		PerSecond: float64(recent) / rateSeconds,
		Owners:    busiest(owners, n), Networks: busiest(networks, n),
	}
}

// copyOf returns a copy of one second, so that the lock is held for a moment only.
func (s *stripe) copyOf(i int) second {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seconds[i]
}

// addTo adds the counts to those of other seconds.
func (s *summary) addTo(uses map[string]Use) {
	for _, c := range s.counts[:s.used] {
		sum := uses[c.subject]
		uses[c.subject] = Use{c.subject, sum.Allowed + int64(c.allowed), sum.Denied + int64(c.denied)}
	}
}

// busiest returns the n uses with the most decisions.
func busiest(uses map[string]Use, n int) []Use {
	list := slices.SortedFunc(maps.Values(uses), func(x, y Use) int {
		return cmp.Or(cmp.Compare(y.Allowed+y.Denied, x.Allowed+x.Denied), cmp.Compare(x.Subject, y.Subject))
	})
	return list[:min(n, len(list))]
}
