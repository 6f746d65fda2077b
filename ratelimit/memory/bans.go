package memory

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Ban implements [ratelimit.Banner]. The length is more than zero, and at most
// [ratelimit.MaxWindow].
func (l *Limiter) Ban(_ context.Context, subject string, length time.Duration) error {
	if subject == "" {
		return errNoSubject
	}
	if length <= 0 || length > ratelimit.MaxWindow {
		return fmt.Errorf("%w: a ban must last more than 0s and at most %v, got %v", ratelimit.ErrInvalid, ratelimit.MaxWindow, length)
	}
	s := l.lock(subject)
	defer s.unlock()
	r, _ := s.record(s.now)
	r.ban(length, s.now)
	s.freeze()
	defer s.unfreeze()
	if err := s.putRecord(r, 0); err != nil {
		return err
	}
	s.keepName(subject)
	return nil
}

// Unban implements [ratelimit.Banner].
func (l *Limiter) Unban(_ context.Context, subject string) (bool, error) {
	if subject == "" {
		return false, errNoSubject
	}
	s := l.lock(subject)
	defer s.unlock()
	r, _ := s.record(s.now)
	s.freeze()
	defer s.unfreeze()
	s.drop(recordHash(s.hash))
	return r.banEnds(s.now) > 0, nil
}

// Bans implements [ratelimit.Banner].
func (l *Limiter) Bans(context.Context) ([]ratelimit.Ban, error) {
	var bans []ratelimit.Ban
	now := l.clock.now()
	for i := range l.segments {
		bans = l.segments[i].appendBans(bans, now)
	}
	return bans, nil
}

func (s *segment) appendBans(bans []ratelimit.Ban, now int64) []ratelimit.Ban {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table.Load()
	for h, name := range s.names.distinct() {
		if r, _ := t.record(h, now); r.banEnds(now) > 0 {
			bans = append(bans, ratelimit.Ban{
				Subject: string(name),
				Ends:    time.Unix(r.banEnds(now), 0).UTC(),
				Level:   r.level,
			})
		}
	}
	return bans
}

// keepName keeps the name of a subject that is banned, for as long as the ban and a
// minute more, in which the clock may step back.
func (s *subject) keepName(name string) {
	t, now := s.table.Load(), s.now-keepExpired
	s.names.add(s.hash, name, func(h uint64) bool {
		r, _ := t.record(h, now)
		return r.banEnds(now) > 0
	})
}

// names holds the names of banned subjects, which are few, in one array of bytes
// without pointers: eight bytes of hash, the length, and the name. Only lists of
// bans and Save search it.
type names struct {
	bytes []byte
	limit int // size at which names of subjects that are not banned are dropped
}

const smallestNames = 512

// add appends a name. At the limit it first drops the names of subjects that are
// not banned, and all but the first entry of each subject.
func (n *names) add(h uint64, name string, banned func(h uint64) bool) {
	if len(n.bytes) >= n.limit {
		n.clean(banned)
	}
	n.bytes = appendName(n.bytes, h, name)
}

func (n *names) clean(banned func(h uint64) bool) {
	var kept []byte
	for h, name := range n.distinct() {
		if banned(h) {
			kept = appendName(kept, h, string(name))
		}
	}
	n.bytes, n.limit = kept, max(2*len(kept), smallestNames)
}

func appendName(b []byte, h uint64, name string) []byte {
	b = binary.LittleEndian.AppendUint64(b, h)
	b = binary.AppendUvarint(b, uint64(len(name)))
	return append(b, name...)
}

// all yields the hashes and names. A hash may come more than once.
func (n *names) all() iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		for rest := n.bytes; len(rest) > 0; {
			h := binary.LittleEndian.Uint64(rest)
			length, size := binary.Uvarint(rest[8:])
			end := 8 + size + int(length)
			if !yield(h, rest[8+size:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// distinct is all with each hash once.
func (n *names) distinct() iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		seen := map[uint64]bool{}
		for h, name := range n.all() {
			if !seen[h] && !yield(h, name) {
				return
			}
			seen[h] = true
		}
	}
}

// index returns the names by their hashes.
func (n *names) index() map[uint64]string {
	index := map[uint64]string{}
	for h, name := range n.all() {
		index[h] = string(name)
	}
	return index
}
