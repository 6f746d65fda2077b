package memory

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Ban implements [ratelimit.Banner]. The length is more than zero, and at most
// [fixedwindow.MaxLength].
func (l *Limiter) Ban(_ context.Context, subject string, length time.Duration) error {
	if subject == "" {
		return errNoSubject
	}
	if length <= 0 || length > fixedwindow.MaxLength {
		return fmt.Errorf("%w: a ban must last more than 0s and at most %v, got %v", ratelimit.ErrInvalid, fixedwindow.MaxLength, length)
	}
	s := l.lock(subject)
	defer s.unlock()
	r, _ := s.record(s.now)
	r.banByHand(length, s.now)
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

// Bans implements [ratelimit.Banner]. The names of banned subjects take at most 256 KiB in
// each segment (see Options.MaxSubjects). A name for which there is no room, or that is
// longer than 1 KiB, is not kept: the ban is in force and not listed, and Unban ends it.
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

// names holds the names of banned subjects, by the hashes of their accounts, for lists of
// bans and Save.
type names struct {
	all   map[uint64]string
	bytes int // of all names
}

const (
	longestName = 1 << 10                // bytes
	mostNames   = 64 * subjectsInSegment // bytes
)

// keep keeps a name until drop is called. The empty name is that of a subject whose name
// was not kept when it was saved.
func (n *names) keep(h uint64, name string) {
	_, found := n.all[h]
	if found || name == "" || len(name) > longestName || n.bytes+len(name) > mostNames {
		return
	}
	if n.all == nil {
		n.all = map[uint64]string{}
	}
	n.all[h] = strings.Clone(name) // it may be a part of a longer string
	n.bytes += len(name)
}

func (n *names) drop(h uint64) {
	name, found := n.all[h]
	if !found {
		return
	}
	n.bytes -= len(name)
	if delete(n.all, h); len(n.all) == 0 {
		n.all = nil // a map does not shrink
	}
}
