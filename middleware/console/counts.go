package console

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

const (
	stripes      = 64
	shownSeconds = 60
	outcomes     = int(ratelimit.Suspended) + 1 // 0 means that the request was not decided
)

// counts has the decisions of the last minute by second and outcome, and by subject those of the
// last minute and of the last day. Subjects are assigned to the stripes by a random hash.
type counts struct {
	seed    maphash.Seed
	stripes [stripes]stripe

	// ahead is how many seconds the clock of the engine, which may run in Redis, is ahead
	// of this one.
	ahead atomic.Int64
}

// A stripe counts the subjects with certain hashes.
type stripe struct {
	mu      sync.Mutex
	seconds [64]second
	minute  [6]span  // of ten seconds
	day     [12]span // of two hours
	_       [64]byte // keeps the locks of two stripes on different cache lines
}

type second struct {
	unix   int64
	totals [outcomes]int32
}

// A span holds the counts of one period. Its number is how many such periods were over in 1970.
type span struct {
	number          int64
	users, networks summary
}

// now returns the time by the clock that decisions are counted by.
func (c *counts) now() time.Time {
	return time.Now().Add(time.Duration(c.ahead.Load()) * time.Second)
}

// count counts a decision that was made at a time in Unix nanoseconds, or 0. To read the clock
// would cost more than everything else here.
func (c *counts) count(subject string, plan *ratelimit.Plan, at int64, o ratelimit.Outcome) {
	unix := at / int64(time.Second)
	if at == 0 {
		unix = c.now().Unix()
	}
	hash := maphash.String(c.seed, subject)
	s := &c.stripes[hash%stripes]
	s.mu.Lock()
	defer s.mu.Unlock()
	this := &s.seconds[uint64(unix)%64]
	if this.unix != unix {
		*this = second{unix: unix}
		if at != 0 {
			c.ahead.Store(unix - time.Now().Unix())
		}
	}
	this.totals[o]++
	if o == 0 {
		return
	}
	network := isNetwork(subject)
	for _, span := range [...]*span{spanOf(s.minute[:], unix/10), spanOf(s.day[:], unix/7200)} {
		summary := &span.users
		if network {
			summary = &span.networks
		}
		n := summary.of(hash, subject)
		n.plan = plan
		if o == ratelimit.Allowed {
			n.allowed++
		} else {
			n.denied++
		}
	}
}

// isNetwork reports whether a subject is one of clientip.NetworkSubject, also of a limit that
// has a name: "network:192.0.2.7/32", "search/network:192.0.2.7/32".
func isNetwork(subject string) bool {
	kind, _, _ := strings.Cut(subject, ":")
	return kind == "network" || strings.HasSuffix(kind, "/network")
}

// spanOf returns a span, which is empty if its place last held another one.
func spanOf(spans []span, number int64) *span {
	s := &spans[uint64(number)%uint64(len(spans))]
	if s.number != number {
		*s = span{number: number}
	}
	return s
}

// decisions returns the number of decisions in the last minute by outcome, and in each of its
// seconds, the oldest first. The last one is the present one.
func (c *counts) decisions(now int64) (byOutcome [outcomes]int64, inSeconds []int64) {
	inSeconds = make([]int64, shownSeconds)
	for i := range c.stripes {
		s := &c.stripes[i]
		s.mu.Lock()
		for _, second := range s.seconds {
			if age := now - second.unix; age >= 0 && age < shownSeconds {
				for o, n := range second.totals {
					byOutcome[o] += int64(n)
					inSeconds[shownSeconds-1-age] += int64(n)
				}
			}
		}
		s.mu.Unlock()
	}
	return byOutcome, inSeconds
}

// busiest returns at most n users and n networks with the most decisions, the busiest first, in
// the last minute or, if day is true, in the last day. The current ten seconds and the current two
// hours are a part of them.
func (c *counts) busiest(now int64, day bool, n int) (users, networks []subject) {
	allUsers, allNetworks := map[string]subject{}, map[string]subject{}
	for i := range c.stripes {
		s := &c.stripes[i]
		spans, last := s.minute[:], now/10
		if day {
			spans, last = s.day[:], now/7200
		}
		for number := last - int64(len(spans)) + 1; number <= last; number++ {
			s.mu.Lock()
			span := spans[uint64(number)%uint64(len(spans))] // a copy: the lock is held for a moment only
			s.mu.Unlock()
			if span.number == number {
				span.users.addTo(allUsers)
				span.networks.addTo(allNetworks)
			}
		}
	}
	return sorted(allUsers, n), sorted(allNetworks, n)
}

// addTo adds the counts to the earlier spans.
func (s *summary) addTo(uses map[string]subject) {
	for _, c := range s.counts[:s.used] {
		sum := uses[c.subject]
		uses[c.subject] = subject{
			Subject: c.subject, Plan: c.plan.Name(), plan: c.plan,
			Allowed: sum.Allowed + int64(c.allowed), Denied: sum.Denied + int64(c.denied),
		}
	}
}

// sorted returns at most n subjects, those with the most decisions.
func sorted(uses map[string]subject, n int) []subject {
	list := slices.AppendSeq(make([]subject, 0, len(uses)), maps.Values(uses))
	slices.SortFunc(list, func(x, y subject) int {
		return cmp.Or(cmp.Compare(y.Allowed+y.Denied, x.Allowed+x.Denied), cmp.Compare(x.Subject, y.Subject))
	})
	return list[:min(n, len(list))]
}
