package apikey

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/middleware/bearer"
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

// An answer is the result of a look-up. It never changes.
type answer[P any] struct {
	record  Record[P]
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
	if r := &a.record; !r.Expires.IsZero() || !r.Revoked.IsZero() {
		if err := r.Valid(now()); err != nil {
			return none, err
		}
	}
	return a.record.Principal, nil
}

// fresh reports whether an answer can be used. Whether the key is valid matters only
// beyond the time for which every answer can be used.
func (v *Verifier[P]) fresh(a *answer[P]) bool {
	switch age := v.since(a.asked); {
	case v.recent(age):
		return true
	case age < 0 || age >= v.ttl:
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

// cachedLocked returns an answer that is still fresh, or nil.
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
func (v *Verifier[P]) storeLocked(s *shard[P], d Digest, a *answer[P]) {
	into, outOf := &s.valid, &s.invalid
	if _, err := a.principal(v.now); err != nil {
		into, outOf = outOf, into
	}
	into.put(d, a, v.generation)
	outOf.remove(d)
}

// generations is a bounded cache. When the young generation is full, it becomes the old
// one, and the entries of the old one are dropped. No sweep is needed.
type generations[P any] struct{ young, old map[Digest]*answer[P] }

func (g *generations[P]) find(d Digest) *answer[P] {
	if a := g.young[d]; a != nil {
		return a
	}
	return g.old[d]
}

func (g *generations[P]) put(d Digest, a *answer[P], size int) {
	if g.young == nil || g.young[d] == nil && len(g.young) >= size {
		g.young, g.old = make(map[Digest]*answer[P]), g.young
	}
	g.young[d] = a
}

func (g *generations[P]) remove(d Digest) {
	delete(g.young, d)
	delete(g.old, d)
}

// lookup is one call of the store, and the requests that wait for its answer.
type lookup[P any] struct {
	prefix  string // of the key
	known   bool   // the key was valid when the store was last asked
	guesser string // the subject that pays if the key is not valid; unset if it is known
	began   time.Time
	ctx     context.Context // of the store's call
	cancel  context.CancelFunc
	forgets int // of the shard, when the look-up began
	waiting int // guarded by the shard's mutex

	done   chan struct{} // closed when the rest is set
	answer *answer[P]
	err    error
}

// lookUp waits for the answer of the store about a key. It joins a look-up that began
// recently, or starts a new one.
func (v *Verifier[P]) lookUp(ctx context.Context, s *shard[P], d Digest, prefix string) (*answer[P], error) {
	s.mu.Lock()
	// Another look-up may have ended since the caller looked.
	if a := v.cachedLocked(s, d); a != nil {
		s.mu.Unlock()
		return a, nil
	}
	l := s.lookups[d]
	if l == nil || !v.recent(v.since(l.began)) {
		l = v.beginLocked(ctx, s, d, prefix)
	}
	l.waiting++
	s.mu.Unlock()

	select {
	case <-l.done:
	case <-l.ctx.Done(): // ahead of done if the store ignores its context
	case <-ctx.Done():
	}
	select {
	case <-l.done:
		return l.answer, l.err
	default:
	}
	s.leave(d, l)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, l.ctx.Err()
}

// beginLocked starts a look-up in a goroutine of its own, so that it does not end with
// the request that came first. It ends at the timeout, and the look-up of a key that is not
// known also with the last request that waits for it. If the network of the request has guessed
// too often, it has ended already.
func (v *Verifier[P]) beginLocked(ctx context.Context, s *shard[P], d Digest, prefix string) *lookup[P] {
	l := &lookup[P]{prefix: prefix, known: s.valid.find(d) != nil, began: v.now(), ctx: ctx, forgets: s.forgets, done: make(chan struct{})}
	if !l.known {
		if l.guesser, l.err = v.guesser(ctx, s.invalid.find(d) != nil); l.err != nil {
			close(l.done)
			return l
		}
	}
	l.ctx, l.cancel = context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	s.lookups[d] = l
	go v.run(s, d, l)
	return l
}

// leave is called by a request that no longer waits. The last one cancels the look-up,
// which no request can join after that, unless the key is known: nothing else bounds how
// often the store is asked about that.
func (s *shard[P]) leave(d Digest, l *lookup[P]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.waiting--
	if l.waiting == 0 && !l.known {
		l.cancel()
		if s.lookups[d] == l {
			delete(s.lookups, d)
		}
	}
}

func (v *Verifier[P]) run(s *shard[P], d Digest, l *lookup[P]) {
	record, err := Record[P]{}, errors.New("the store ended the goroutine of the look-up")
	defer func() {
		// In this goroutine a panic would end the process, not the request.
		if p := recover(); p != nil {
			err = fmt.Errorf("the store panicked: %v\n%s", p, debug.Stack())
		}
		v.finish(s, d, l, record, err)
	}()
	record, err = v.ask(l, d)
}

// ask calls the store. For a key that was not valid lately it first waits for the semaphore, and
// charges the network only then: many valid keys that are new and come at once hold few units.
func (v *Verifier[P]) ask(l *lookup[P], d Digest) (record Record[P], err error) {
	if l.known {
		return v.store.Lookup(l.ctx, d)
	}
	select {
	case v.unknown <- struct{}{}:
		defer func() { <-v.unknown }()
	case <-l.ctx.Done():
		return record, l.ctx.Err()
	}
	charged, err := v.networks.Take(l.ctx, l.guesser, v.guesses, 1)
	if err := guessing(charged, err); err != nil {
		return record, err
	}
	defer func() { // a store that panics gives back too
		invalid := errors.Is(err, bearer.ErrInvalid) || record.Valid(v.now()) != nil
		if !invalid && l.ctx.Err() != context.Canceled { // an abandoned look-up stays charged
			_ = v.networks.Adjust(l.ctx, l.guesser, &charged, 0, "")
		}
	}()
	return v.store.Lookup(l.ctx, d)
}

// finish gives the answer to the waiting requests, and caches it unless the look-up was
// cancelled or something later makes the answer useless.
func (v *Verifier[P]) finish(s *shard[P], d Digest, l *lookup[P], record Record[P], err error) {
	switch {
	case err == nil:
		l.answer = &answer[P]{record: record, asked: l.began}
		if c, ok := any(&l.answer.record.Principal).(completer); ok {
			c.complete(l.prefix)
		}
	case errors.Is(err, ErrUnknown):
		l.answer = &answer[P]{unknown: true, asked: l.began}
	default:
		l.err = err
	}
	s.mu.Lock()
	current := s.lookups[d] == l
	if current {
		delete(s.lookups, d)
	}
	if l.answer != nil && (current || v.usefulLocked(s, d, l)) {
		v.storeLocked(s, d, l.answer)
	}
	s.mu.Unlock()
	close(l.done)
	l.cancel()
}

// usefulLocked reports whether to cache the answer of a look-up that took so long that a
// later one has replaced it: if no later answer is cached. While a store is slow, every look-up
// may be replaced.
func (v *Verifier[P]) usefulLocked(s *shard[P], d Digest, l *lookup[P]) bool {
	if l.ctx.Err() != nil || l.forgets != s.forgets {
		return false
	}
	for _, g := range []*generations[P]{&s.valid, &s.invalid} {
		if a := g.find(d); a != nil && a.asked.After(l.began) {
			return false
		}
	}
	return true
}
