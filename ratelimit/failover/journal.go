package failover

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
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
	primary ratelimit.Adjuster // nil unless the mode is FailLocal: the journal is then empty
	seed    maphash.Seed
	bound   int64
	charges atomic.Int64
	held    atomic.Int64 // entries
	lost    atomic.Uint64
	warned  atomic.Bool // a loss of this outage was logged
	merged  atomic.Uint64
	dropped atomic.Uint64
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
	made := *d
	made.Cost = 0
	if j.enter(subject, &made, d.Cost, "", time.Now().UnixNano(), nil) == nil {
		return
	}
	j.lost.Add(1)
	if !j.warned.Swap(true) {
		slog.Warn("failover: the journal is full; the primary will not count all requests that are admitted without it; raise Options.JournalSize", "JournalSize", j.bound)
	}
}

// enter enters an adjustment if it has room, and if here, which is not nil unless the local
// engine has made it, then makes it there. An id says that the primary may have made it.
func (j *journal) enter(subject string, d *ratelimit.Decision, units int64, id string, now int64, here func() error) error {
	s := j.lock(subject)
	defer s.mu.Unlock()
	if e := s.entries[subject]; e != nil {
		j.compact(s, e, now)
	}
	e, more := s.entries[subject], int64(0)
	for c := range charges(d, units, id, now) {
		if e == nil || e.find(c) == nil {
			more++
		}
	}
	if more > 0 && !j.room(s, more, now) {
		return fmt.Errorf("failover: %w: the journal is full; Options.JournalSize is %d", ratelimit.ErrUnavailable, j.bound)
	}
	if here != nil {
		if err := here(); err != nil {
			return err
		}
	}
	for c := range charges(d, units, id, now) {
		e := j.entry(s, subject)
		if o := e.find(c); o != nil {
			o.add(c)
			continue
		}
		e.charges = append(e.charges, *c)
		j.charges.Add(1)
	}
	return nil
}

// entry returns the entry of subject in its shard, which is locked.
func (j *journal) entry(s *journalShard, subject string) *entry {
	e := s.entries[subject]
	if e == nil {
		if s.entries == nil {
			s.entries = map[string]*entry{}
		}
		e = &entry{subject: subject, merging: make(chan struct{}, 1)}
		s.entries[subject] = e
		j.held.Add(1)
	}
	return e
}

// room reports whether there is room for more charges. It makes room by removing what has
// ended.
func (j *journal) room(s *journalShard, more, now int64) bool {
	if j.charges.Load()+more > j.bound {
		j.sweep(s, now)
	}
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
	return e, e != nil && e.wait > 0
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
	now := time.Now()
	e.wait = min(max(2*e.wait, shortest), longest)
	e.due = now.Add(e.wait)
	if s.entries[e.subject] == e {
		j.compact(s, e, now.UnixNano())
	}
}

// all returns the entries, those that are due first at first.
func (j *journal) all() (all []*entry) {
	for i := range j.shards {
		s := &j.shards[i]
		s.mu.Lock()
		all = slices.AppendSeq(all, maps.Values(s.entries))
		s.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b *entry) int { return a.due.Compare(b.due) })
	return all
}

// errBacksOff says that the primary does not know all of the subject's usage, and
// refuses it.
var errBacksOff = errors.New("failover: usage of the subject is not merged")

// bring merges what the journal holds of subject. A request brings the usage of its
// subject before the primary decides, so that an outage grants no second quota.
func (j *journal) bring(ctx context.Context, subject string) error {
	e, backsOff := j.find(subject)
	for ; e != nil; e, backsOff = j.find(subject) {
		if backsOff {
			return errBacksOff
		}
		if err := j.merge(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// merge makes the charges of e. A charge that fails stays in the journal, and is repeated
// as it is. One that the primary finds invalid is dropped.
func (j *journal) merge(ctx context.Context, e *entry) error {
	select {
	case e.merging <- struct{}{}:
		defer func() { <-e.merging }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		c, ok := j.next(e)
		if !ok {
			return nil
		}
		err := j.send(ctx, e.subject, &c)
		switch {
		case errors.Is(err, ratelimit.ErrInvalid):
			j.dropped.Add(1)
		case err != nil:
			return err
		}
		j.made(e, c.id)
	}
}

func (j *journal) send(ctx context.Context, subject string, c *charge) (err error) {
	defer recovered(&err)
	return j.primary.Adjust(ctx, subject, &c.d, c.units, c.id)
}

// recovered makes a panic of the primary an error: in the background it ends the process.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("failover: the primary panicked: %v", p)
	}
}

// mergeAll merges what the journal holds, until the context ends. It merges some
// entries at once, so that a few which hang do not keep it from the others, and tries
// each several times.
func (j *journal) mergeAll(ctx context.Context) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 32)
	for _, e := range j.all() {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			for try := 0; try < 3 && j.merge(ctx, e) != nil; try++ {
			}
		})
	}
	wg.Wait()
}
