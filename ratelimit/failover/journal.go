package failover

import (
	"crypto/rand"
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A journal holds the usage that was admitted while the primary did not decide, by
// subject, until it is merged. It is bounded: when it is full, a new subject replaces
// one that has used no more.
type journal struct {
	seed   maphash.Seed
	bound  int          // entries in a shard
	held   atomic.Int64 // entries
	lost   atomic.Uint64
	merged atomic.Uint64
	shards [journalShards]journalShard
}

const journalShards, journalSample = 32, 8

type journalShard struct {
	mu      sync.Mutex
	entries map[string]*entry
	_       [48]byte // keeps two locks off one cache line
}

func (j *journal) init(bound int) {
	j.seed = maphash.MakeSeed()
	j.bound = (bound + journalShards - 1) / journalShards
}

// lock locks the shard of subject, which the caller unlocks.
func (j *journal) lock(subject string) *journalShard {
	s := &j.shards[maphash.String(j.seed, subject)%journalShards]
	s.mu.Lock()
	return s
}

func (j *journal) empty() bool { return j.held.Load() == 0 }

// admit enters what the local engine admitted.
func (j *journal) admit(subject string, d *ratelimit.Decision) {
	j.enter(subject, charge{plan: d.Plan, at: d.Time, units: inEach(d.Plan, d.Cost), since: comeBack(d)})
}

// enter enters a charge. One with an id was sent, and may have been made.
func (j *journal) enter(subject string, c charge) {
	s := j.lock(subject)
	defer s.mu.Unlock()
	e := s.entries[subject]
	if e == nil {
		if len(s.entries) >= j.bound && !j.drop(s, slices.Max(c.units[:]), c.at) {
			j.lost.Add(1)
			return
		}
		if s.entries == nil {
			s.entries = map[string]*entry{}
		}
		e = &entry{subject: subject, merging: make(chan struct{}, 1)}
		s.entries[subject] = e
		j.held.Add(1)
	}
	if !e.enter(c) {
		j.lost.Add(1)
	}
}

// drop makes room in a full shard: of a sample it drops the entry that has used
// least, if that is no more than so many units. So a flood of fresh subjects drops
// only fresh subjects.
func (j *journal) drop(s *journalShard, units, now int64) bool {
	var victim *entry
	least, n := int64(math.MaxInt64), 0
	for _, e := range s.entries { // begins anywhere
		if used := e.used(now); used < least {
			victim, least = e, used
		}
		if n++; least == 0 || n == journalSample {
			break
		}
	}
	if least > units {
		return false
	}
	if least > 0 {
		j.lost.Add(1)
	}
	j.remove(s, victim)
	return true
}

// remove removes e, which is in the shard. The shard is locked.
func (j *journal) remove(s *journalShard, e *entry) {
	if delete(s.entries, e.subject); len(s.entries) == 0 {
		s.entries = nil // a map never shrinks
	}
	j.held.Add(-1)
}

// credit takes back units that admit entered. It reports whether they were still in
// the journal, and not yet sent.
func (j *journal) credit(subject string, plan *ratelimit.Plan, units, at int64) bool {
	s := j.lock(subject)
	defer s.mu.Unlock()
	e := s.entries[subject]
	return e != nil && e.credit(plan, units, at)
}

// find returns the entry of subject, nil if there is none, and whether it backs off.
func (j *journal) find(subject string) (e *entry, backsOff bool) {
	if j.empty() {
		return nil, false
	}
	s := j.lock(subject)
	defer s.mu.Unlock()
	e = s.entries[subject]
	return e, e != nil && e.failures > 0
}

// next returns the charge of e to send, with its id. If all are made, it removes the
// entry. The caller holds e.merging.
func (j *journal) next(e *entry) (c charge, ok bool) {
	s := j.lock(e.subject)
	defer s.mu.Unlock()
	if s.entries[e.subject] != e {
		return c, false // it was dropped
	}
	e.charges = slices.DeleteFunc(e.charges, func(c charge) bool { return c.refunded() })
	if len(e.charges) == 0 {
		j.remove(s, e)
		j.merged.Add(1)
		return c, false
	}
	if e.charges[0].id == "" {
		e.charges[0].id = rand.Text()
		e.charges[0].advance(time.Now().UnixNano())
	}
	return e.charges[0], true
}

// made records that the charge that next returned is made.
func (j *journal) made(e *entry) {
	s := j.lock(e.subject)
	defer s.mu.Unlock()
	e.charges = e.charges[1:]
}

// backOff records that the primary refused e. The waits double, from shortest to
// longest. An entry is removed when its windows have ended.
func (j *journal) backOff(e *entry, shortest, longest time.Duration) {
	s := j.lock(e.subject)
	defer s.mu.Unlock()
	wait := shortest
	for i := 0; i < e.failures && wait < longest; i++ {
		wait *= 2
	}
	now := time.Now()
	e.failures++
	e.due = now.Add(min(wait, longest))
	if s.entries[e.subject] == e && e.used(now.UnixNano()) == 0 {
		j.remove(s, e)
	}
}

// all returns the entries that are wanted.
func (j *journal) all(wanted func(*entry) bool) (all []*entry) {
	for i := range j.shards {
		s := &j.shards[i]
		s.mu.Lock()
		for _, e := range s.entries {
			if wanted(e) {
				all = append(all, e)
			}
		}
		s.mu.Unlock()
	}
	return all
}
