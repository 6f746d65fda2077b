package memory

import (
	"context"
	"fmt"
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
	s.names.keep(s.hash, subject)
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

// Bans implements [ratelimit.Banner]. Names of banned subjects take at most 256 KiB for
// each segment of Options.MaxSubjects. A name for which there is no room, or that is longer
// than 1 KiB, is not kept: the ban is in force and not listed, and Unban ends it.
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
	for h, name := range s.names.all {
		if r, _ := t.record(h, now); r.banEnds(now) > 0 {
			bans = append(bans, ratelimit.Ban{
				Subject: name,
				Ends:    time.Unix(r.banEnds(now), 0).UTC(),
				Level:   r.level,
			})
		}
	}
	return bans
}
