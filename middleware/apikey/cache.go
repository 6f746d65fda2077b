package apikey

import (
	"sync"
	"time"
)

const shardCount = 16

// shard is the part of a Verifier for the keys whose digests begin alike. No call
// to a store is made while its mutex is held.
type shard struct {
	mu      sync.Mutex
	valid   generations
	invalid generations
	lookups map[Digest]*lookup // under way
}

func (s *shard) init(capacity int) {
	perGeneration := (capacity + 2*shardCount - 1) / (2 * shardCount)
	s.valid = newGenerations(perGeneration)
	s.invalid = newGenerations(perGeneration)
	s.lookups = make(map[Digest]*lookup)
}

// An answer is what a store said about a key. It never changes.
type answer struct {
	record  Record
	unknown bool
	asked   time.Time // when the look-up began
}

// principal judges the key. It reads the clock only for a key that ends.
func (a *answer) principal(now func() time.Time) (Principal, error) {
	if a.unknown {
		return Principal{}, ErrUnknown
	}
	if a.record.ends() {
		if err := a.record.Valid(now()); err != nil {
			return Principal{}, err
		}
	}
	return a.record.Principal, nil
}

// fresh reports whether what began at an instant is still good. Its age may be
// negative, by the little that goroutines overtake each other, or because a clock
// that is not monotonic was set back, after which nothing must stay good for long.
func (v *Verifier) fresh(began time.Time) bool {
	age := v.since(began)
	return -v.ttl < age && age < v.ttl
}

// recall returns an answer that is still good, or nil.
func (v *Verifier) recall(s *shard, d Digest) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return v.recallLocked(s, d)
}

func (v *Verifier) recallLocked(s *shard, d Digest) *answer {
	if a := s.valid.find(d); a != nil && v.fresh(a.asked) {
		return a
	}
	if a := s.invalid.find(d); a != nil && v.fresh(a.asked) {
		return a
	}
	return nil
}

// rememberLocked keeps an answer in the place of any former one.
func (s *shard) rememberLocked(d Digest, a *answer, now func() time.Time) {
	into, outOf := &s.valid, &s.invalid
	if _, err := a.principal(now); err != nil {
		into, outOf = outOf, into
	}
	into.put(d, a)
	outOf.remove(d)
}

// generations is a map that forgets: when the young generation is full it becomes
// the old one, and what the old one held is gone. Everything that was put during
// the last generation is there, and nothing has to be swept.
type generations struct {
	young, old map[Digest]*answer
	size       int // of one generation
}

func newGenerations(size int) generations {
	return generations{young: make(map[Digest]*answer), old: make(map[Digest]*answer), size: size}
}

func (g *generations) find(d Digest) *answer {
	if a := g.young[d]; a != nil {
		return a
	}
	return g.old[d]
}

func (g *generations) put(d Digest, a *answer) {
	if g.young[d] == nil && len(g.young) >= g.size {
		clear(g.old)
		g.young, g.old = g.old, g.young
	}
	g.young[d] = a
}

func (g *generations) remove(d Digest) {
	delete(g.young, d)
	delete(g.old, d)
}
