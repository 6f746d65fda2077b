package failover

import (
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A journal holds what was admitted in place of the primary, by subject, until
// it is merged. It is bounded: when it is full, a new subject takes the place of
// one that has used no more.
type journal struct {
	seed    maphash.Seed
	start   time.Time
	bound   int          // entries in a shard
	held    atomic.Int64 // entries, those included that are being merged
	lost    atomic.Uint64
	dropped atomic.Uint64
	shards  [journalShards]journalShard
}

const (
	journalShards = 32
	journalSample = 8
)

type journalShard struct {
	mu      sync.Mutex
	entries map[string]*entry
	claimed map[string]*entry // those being merged
	_       [40]byte          // keeps two locks off one cache line
}

func (j *journal) init(bound int) {
	j.seed = maphash.MakeSeed()
	j.start = time.Now()
	j.bound = (bound + journalShards - 1) / journalShards
}

func (j *journal) shard(subject string) *journalShard {
	return &j.shards[maphash.String(j.seed, subject)%journalShards]
}

// time returns the time since the journal began. The steps of the clock do not
// change it.
func (j *journal) time() int64 { return int64(time.Since(j.start)) }

func (j *journal) empty() bool { return j.held.Load() == 0 }

// add enters units that subject was admitted at a time, in Unix nanoseconds.
func (j *journal) add(subject string, plan *ratelimit.Plan, units, at int64) {
	s := j.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := j.of(s, subject, units, at); e != nil && !e.add(plan, units, at) {
		j.lost.Add(1)
	}
}

// credit takes back units that add entered. It reports whether they were still
// there to be taken back.
func (j *journal) credit(subject string, plan *ratelimit.Plan, units, at int64) bool {
	if j.empty() {
		return false
	}
	s := j.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[subject]
	return e != nil && e.credit(plan, units, at)
}

// order has change note in the entry of subject what is to be done when the
// primary is back. It reports whether there was room.
func (j *journal) order(subject string, change func(*entry)) bool {
	s := j.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := j.of(s, subject, ordered-1, time.Now().UnixNano())
	if e != nil {
		change(e)
	}
	return e != nil
}

// claim takes the entry of subject out, nil if there is none. A goroutine that
// claims an entry must give it to done or restore. While another one merges what
// the journal had of subject, claim waits.
func (j *journal) claim(ctx context.Context, subject string) (*entry, error) {
	if j.empty() {
		return nil, nil
	}
	s := j.shard(subject)
	for {
		s.mu.Lock()
		other := s.claimed[subject]
		if other == nil {
			defer s.mu.Unlock()
			return s.claim(subject), nil
		}
		free := other.free // another one if it is claimed again
		s.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// claimAny takes out any entry that is due and is not being merged, nil if there
// is none. Those that the primary refused come after the others.
func (j *journal) claimAny(now int64) *entry {
	for _, due := range [...]int64{0, now} {
		for i := range j.shards {
			if e := j.shards[i].claimAny(due); e != nil {
				return e
			}
		}
	}
	return nil
}

func (s *journalShard) claimAny(due int64) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	for subject, e := range s.entries {
		if e.due <= due && s.claimed[subject] == nil {
			return s.claim(subject)
		}
	}
	return nil
}

// subjects returns the subjects of all entries that are not being merged.
func (j *journal) subjects() (all []string) {
	for i := range j.shards {
		s := &j.shards[i]
		s.mu.Lock()
		all = slices.AppendSeq(all, maps.Keys(s.entries))
		s.mu.Unlock()
	}
	return all
}

func (s *journalShard) claim(subject string) *entry {
	e := s.remove(subject)
	if e == nil {
		return nil
	}
	e.free = make(chan struct{})
	if s.claimed == nil {
		s.claimed = map[string]*entry{}
	}
	s.claimed[subject] = e
	return e
}

// remove takes the entry of subject out for good.
func (s *journalShard) remove(subject string) *entry {
	e := s.entries[subject]
	if delete(s.entries, subject); len(s.entries) == 0 {
		s.entries = nil // a map keeps the size that it once had
	}
	return e
}

// release ends all waits for the claimed entry e, which must still be given to done
// or restore.
func (j *journal) release(e *entry) {
	s := j.shard(e.subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(e)
}

func (s *journalShard) release(e *entry) {
	if s.claimed[e.subject] == e {
		delete(s.claimed, e.subject)
		close(e.free)
	}
}

// done says that the claimed entry e has been merged.
func (j *journal) done(e *entry) {
	j.held.Add(-1)
	j.release(e)
}

// restore puts back what is left of the claimed entry e, before what has come
// since.
func (j *journal) restore(e *entry) {
	s := j.shard(e.subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(e)
	switch newer := s.entries[e.subject]; {
	case e.empty():
		j.held.Add(-1)
	case newer != nil:
		j.held.Add(-1)
		if !newer.follow(e) {
			j.lost.Add(1)
		}
	default:
		s.put(e)
	}
}

func (s *journalShard) put(e *entry) {
	if s.entries == nil {
		s.entries = map[string]*entry{}
	}
	s.entries[e.subject] = e
}

// of returns the entry of subject, which it makes if there is none. Without room
// for a subject that has used so many units, it returns nil.
func (j *journal) of(s *journalShard, subject string, units, now int64) *entry {
	if e := s.entries[subject]; e != nil {
		return e
	}
	if len(s.entries) >= j.bound && !j.drop(s, units, now) {
		j.lost.Add(1)
		return nil
	}
	e := newEntry(subject)
	s.put(e)
	j.held.Add(1)
	return e
}

// drop makes room: it drops an entry that means nothing any more, or else, of a
// sample, the one that has used least, if that is no more than so many units. A
// flood of fresh subjects therefore drops only each other.
func (j *journal) drop(s *journalShard, units, now int64) bool {
	var victim *entry
	var least int64
	n := 0
	for _, e := range s.entries { // begins anywhere
		used := e.used(now)
		if victim == nil || used < least {
			victim, least = e, used
		}
		if n++; used == 0 || n == journalSample {
			break
		}
	}
	if least > units {
		return false
	}
	if least > 0 {
		j.lost.Add(1)
	}
	s.remove(victim.subject)
	j.held.Add(-1)
	return true
}
