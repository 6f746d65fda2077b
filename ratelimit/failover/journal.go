package failover

import (
	"fmt"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A journal holds the adjustments that the primary has not made, by subject, until they
// are merged: requests that were admitted while it did not decide, and what changed the
// costs of requests. It is bounded: when it is full, nothing is added but to sums that it
// holds.
type journal struct {
	seed    maphash.Seed
	bound   int64
	charges atomic.Int64
	held    atomic.Int64 // entries
	lost    atomic.Uint64
	warned  atomic.Bool // a loss of this outage was logged
	merged  atomic.Uint64
	shards  [journalShards]journalShard
}

const journalShards, journalSample = 32, 8

type journalShard struct {
	mu      sync.Mutex
	entries map[string]*entry
	_       [48]byte // keeps two locks off one cache line
}

func (j *journal) init(bound int) {
	j.seed = maphash.MakeSeed()
	j.bound = int64(bound)
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
	now := time.Now().UnixNano()
	if d.Plan.Smooth() {
		made := *d
		made.Cost = 0
		all, n := split(&made, d.Cost, now)
		if j.enter(subject, all[:n], now, nil) == nil {
			return
		}
	} else { // the most common case; split takes longer
		one := [1]charge{{d: *d, at: now, units: d.Cost}}
		one[0].d.Cost = 0
		if j.enter(subject, one[:], now, nil) == nil {
			return
		}
	}
	j.lost.Add(1)
	if !j.warned.Swap(true) {
		slog.Warn("failover: the journal is full; the primary will not count all requests that are admitted without it; raise Options.JournalSize", "JournalSize", j.bound)
	}
}

// enter enters charges if they have room, and if here, which is not nil for an
// adjustment, then makes it in the local engine.
func (j *journal) enter(subject string, charges []charge, now int64, here func() error) error {
	s := j.lock(subject)
	defer s.mu.Unlock()
	if !j.room(s, subject, charges, now) {
		return fmt.Errorf("failover: %w: the journal is full; Options.JournalSize is %d", ratelimit.ErrUnavailable, j.bound)
	}
	if here != nil {
		if err := here(); err != nil {
			return err
		}
	}
	e := s.entries[subject]
	if e == nil && len(charges) > 0 {
		if s.entries == nil {
			s.entries = map[string]*entry{}
		}
		e = &entry{subject: subject, merging: make(chan struct{}, 1)}
		s.entries[subject] = e
		j.held.Add(1)
	}
	for i := range charges {
		c := &charges[i]
		if c.id == "" {
			if o := e.find(c, now); o != nil {
				o.add(c)
				continue
			}
		}
		e.charges = append(e.charges, *c)
		j.charges.Add(1)
	}
	return nil
}

// room reports whether there is room for charges of a subject. It makes room by removing
// what has ended.
func (j *journal) room(s *journalShard, subject string, charges []charge, now int64) bool {
	e, more := s.entries[subject], int64(0)
	for i := range charges {
		if e == nil || charges[i].id != "" || e.find(&charges[i], now) == nil {
			more++
		}
	}
	if more > 0 && e != nil {
		j.compact(s, e, now)
	}
	if more == 0 || j.charges.Load()+more <= j.bound {
		return true
	}
	j.sweep(s, now)
	for try := 0; try < 3 && j.charges.Load()+more > j.bound; try++ {
		if o := &j.shards[rand.IntN(journalShards)]; o.mu.TryLock() { // s itself is locked, and another goroutine may lock two as well
			j.sweep(o, now)
			o.mu.Unlock()
		}
	}
	return j.charges.Load()+more <= j.bound
}

// sweep removes what has ended from a sample of the entries of a shard, which is locked.
func (j *journal) sweep(s *journalShard, now int64) {
	n := 0
	for _, e := range s.entries { // begins anywhere
		j.compact(s, e, now)
		if n++; n == journalSample {
			return
		}
	}
}

// compact removes from e, which is in the shard, what has ended, and e if nothing is
// left. The shard is locked.
func (j *journal) compact(s *journalShard, e *entry, now int64) {
	before := len(e.charges)
	e.compact(now)
	j.charges.Add(int64(len(e.charges) - before))
	if len(e.charges) > 0 {
		return
	}
	if delete(s.entries, e.subject); len(s.entries) == 0 {
		s.entries = nil // a map never shrinks
	}
	j.held.Add(-1)
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

// next returns the call to make for e. If all are made, it removes the entry. The caller
// holds e.merging.
func (j *journal) next(e *entry) (c charge, ok bool) {
	s := j.lock(e.subject)
	defer s.mu.Unlock()
	if s.entries[e.subject] != e {
		return c, false // it has ended
	}
	now := time.Now().UnixNano()
	if j.compact(s, e, now); len(e.charges) == 0 {
		j.merged.Add(1)
		return c, false
	}
	if e.charges[0].id == "" {
		e.charges[0].seal(now)
	}
	return e.charges[0], true
}

// made records that the call that next returned is made.
func (j *journal) made(e *entry, id string) {
	s := j.lock(e.subject)
	defer s.mu.Unlock()
	if len(e.charges) > 0 && e.charges[0].id == id {
		e.charges = e.charges[1:]
		j.charges.Add(-1)
	}
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
	if s.entries[e.subject] == e {
		j.compact(s, e, now.UnixNano())
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
