package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Ban implements [ratelimit.Banner]. The length is from above zero to
// [ratelimit.MaxWindow].
func (l *Limiter) Ban(_ context.Context, subject string, length time.Duration) error {
	if subject == "" {
		return errNoSubject
	}
	if length <= 0 || length > ratelimit.MaxWindow {
		return fmt.Errorf("%w: ban of %v is not from above 0 to %v", ratelimit.ErrInvalid, length, ratelimit.MaxWindow)
	}
	now := l.clock.now()
	h := l.key.sum(subject)
	s := l.segment(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	r, _ := s.record(h, now)
	r.ban(length, now)
	e := l.take(s, h)
	if err := l.putRecord(s, h, r, 0, now); err != nil {
		s.thaw(h, &e, 0)
		return err
	}
	s.thaw(h, &e, s.mark(h))
	s.name(h, subject, now)
	return nil
}

// Unban implements [ratelimit.Banner].
func (l *Limiter) Unban(_ context.Context, subject string) (bool, error) {
	if subject == "" {
		return false, errNoSubject
	}
	now := l.clock.now()
	h := l.key.sum(subject)
	s := l.segment(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	banned := s.banEnds(h, now) > 0
	l.drop(s, recordHash(h))
	return banned, nil
}

// Bans implements [ratelimit.Banner].
func (l *Limiter) Bans(context.Context) ([]ratelimit.Ban, error) {
	var bans []ratelimit.Ban
	now := l.clock.now()
	for i := range l.segments {
		bans = l.segments[i].bans(bans, now)
	}
	return bans, nil
}

func (s *segment) bans(bans []ratelimit.Ban, now int64) []ratelimit.Ban {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[uint64]bool{}
	for h, name := range s.names.all() {
		if seen[h] {
			continue
		}
		seen[h] = true
		if r, _ := s.record(h, now); r.banEnds(now) > 0 {
			bans = append(bans, ratelimit.Ban{
				Subject: string(name),
				Ends:    time.Unix(r.banEnds(now), 0).UTC(),
				Level:   r.level,
			})
		}
	}
	return bans
}

// banEnds returns the end of the ban of h in force, in Unix seconds, or 0.
func (s *segment) banEnds(h uint64, now int64) int64 {
	r, _ := s.record(h, now)
	return r.banEnds(now)
}

// name keeps the name of the banned subject h, and for a minute after the ban, in
// which the clock may step back.
func (s *segment) name(h uint64, subject string, now int64) {
	s.names.add(h, subject, func(h uint64) bool { return s.banEnds(h, now-linger) > 0 })
}
