package apikey

import (
	"sync"
	"time"
)

const shardCount = 16

// shard is the part of a Verifier for some of the keys, selected by the first byte of
// their digests. The store is never called while the mutex is held.
type shard[P any] struct {
	mu      sync.Mutex
	valid   generations[P]
	invalid generations[P]
	lookups map[Digest]*lookup[P] // not yet answered, and can be joined
	forgets int                   // calls of Forget
}

func (s *shard[P]) init(capacity int) {
	perGeneration := (capacity + 2*shardCount - 1) / (2 * shardCount)
	s.valid = newGenerations[P](perGeneration)
	s.invalid = newGenerations[P](perGeneration)
	s.lookups = make(map[Digest]*lookup[P])
}

// An answer is the result of a look-up. It never changes.
type answer[P any] struct {
	record  RecordOf[P]
	unknown bool
	asked   time.Time // when the look-up began
}

// principal returns the principal of a key that is valid now. It reads the clock only
// for a key that expires or was revoked.
func (a *answer[P]) principal(now func() time.Time) (P, error) {
	var none P
	if a.unknown {
		return none, ErrUnknown
	}
	if a.record.hasEnd() {
		if err := a.record.Valid(now()); err != nil {
			return none, err
		}
	}
	return a.record.Principal, nil
}

// fresh reports whether an answer can be used. Whether the key is valid matters only
// beyond the time for which every answer can be used.
func (v *Verifier[P]) fresh(a *answer[P]) bool {
	age := v.since(a.asked)
	if v.recent(age) {
		return true
	}
	if age < 0 || age >= v.ttl {
		return false
	}
	_, err := a.principal(v.now)
	return err == nil
}

// recent reports whether an age is within the TTL of answers that a key is not valid. The
// age may be negative: slightly, because goroutines overtake each other, or by much,
// because a clock that is not monotonic was set back. Then nothing must stay cached for
// long.
func (v *Verifier[P]) recent(age time.Duration) bool {
	return -v.invalidTTL < age && age < v.invalidTTL
}

// cached returns an answer that is still fresh, or nil.
func (v *Verifier[P]) cached(s *shard[P], d Digest) *answer[P] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return v.cachedLocked(s, d)
}

func (v *Verifier[P]) cachedLocked(s *shard[P], d Digest) *answer[P] {
	if a := s.valid.find(d); a != nil && v.fresh(a) {
		return a
	}
	if a := s.invalid.find(d); a != nil && v.fresh(a) {
		return a
	}
	return nil
}

// storeLocked caches an answer instead of any earlier one.
func (s *shard[P]) storeLocked(d Digest, a *answer[P], now func() time.Time) {
	into, outOf := &s.valid, &s.invalid
	if _, err := a.principal(now); err != nil {
		into, outOf = outOf, into
	}
	into.put(d, a)
	outOf.remove(d)
}

// generations is a bounded cache. When the young generation is full, it becomes the old
// one, and the entries of the old one are dropped. No sweep is needed.
type generations[P any] struct {
	young, old map[Digest]*answer[P]
	size       int // of one generation
}

func newGenerations[P any](size int) generations[P] {
	return generations[P]{young: make(map[Digest]*answer[P]), old: make(map[Digest]*answer[P]), size: size}
}

func (g *generations[P]) find(d Digest) *answer[P] {
	if a := g.young[d]; a != nil {
		return a
	}
	return g.old[d]
}

func (g *generations[P]) put(d Digest, a *answer[P]) {
	if g.young[d] == nil && len(g.young) >= g.size {
		clear(g.old)
		g.young, g.old = g.old, g.young
	}
	g.young[d] = a
}

func (g *generations[P]) remove(d Digest) {
	delete(g.young, d)
	delete(g.old, d)
}
