package apikey

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// lookup is one call of the store, and the requests that wait for its answer.
type lookup[P any] struct {
	prefix  string // of the key
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
// the request that came first. It ends with the last request that waits for it, or at
// the timeout.
func (v *Verifier[P]) beginLocked(ctx context.Context, s *shard[P], d Digest, prefix string) *lookup[P] {
	l := &lookup[P]{prefix: prefix, began: v.now(), forgets: s.forgets, done: make(chan struct{})}
	l.ctx, l.cancel = context.WithTimeout(context.WithoutCancel(ctx), v.timeout)
	s.lookups[d] = l
	wasValid := s.valid.find(d) != nil
	go v.run(s, d, l, wasValid)
	return l
}

// leave is called by a request that no longer waits. The last one cancels the look-up,
// which no request can join after that.
func (s *shard[P]) leave(d Digest, l *lookup[P]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.waiting--
	if l.waiting == 0 {
		l.cancel()
		if s.lookups[d] == l {
			delete(s.lookups, d)
		}
	}
}

func (v *Verifier[P]) run(s *shard[P], d Digest, l *lookup[P], wasValid bool) {
	record, err := RecordOf[P]{}, errors.New("the store ended the goroutine of the look-up")
	defer func() {
		// In this goroutine a panic would end the process, not the request.
		if p := recover(); p != nil {
			err = fmt.Errorf("the store panicked: %v\n%s", p, debug.Stack())
		}
		v.finish(s, d, l, record, err)
	}()
	record, err = v.ask(l.ctx, d, wasValid)
}

// ask calls the store. For a key that was not valid lately it first waits for the
// semaphore.
func (v *Verifier[P]) ask(ctx context.Context, d Digest, wasValid bool) (RecordOf[P], error) {
	if !wasValid {
		select {
		case v.unknown <- struct{}{}:
			defer func() { <-v.unknown }()
		case <-ctx.Done():
			return RecordOf[P]{}, ctx.Err()
		}
	}
	return v.store.Lookup(ctx, d)
}

// finish gives the answer to the waiting requests, and caches it unless the look-up was
// cancelled or something later makes the answer useless.
func (v *Verifier[P]) finish(s *shard[P], d Digest, l *lookup[P], record RecordOf[P], err error) {
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
		s.storeLocked(d, l.answer, v.now)
	}
	s.mu.Unlock()
	close(l.done)
	l.cancel()
}

// usefulLocked reports whether to cache the answer of a look-up that took so long that a
// later one has replaced it: if the key is valid, which is known for the TTL, and no later
// answer is cached. While a store is slow, every look-up may be replaced.
func (v *Verifier[P]) usefulLocked(s *shard[P], d Digest, l *lookup[P]) bool {
	if l.ctx.Err() != nil || l.forgets != s.forgets {
		return false
	}
	for _, g := range []*generations[P]{&s.valid, &s.invalid} {
		if a := g.find(d); a != nil && a.asked.After(l.began) {
			return false
		}
	}
	_, err := l.answer.principal(v.now)
	return err == nil
}
