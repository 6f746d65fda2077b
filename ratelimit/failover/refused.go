package failover

import "time"

// An entry that the primary refuses, although it answers other calls, does not
// hold up the others. It is tried again after a wait that doubles, and dropped
// in the end.

// maxTries is how often the primary refuses an entry before it is dropped. With
// the default waits that is after eight minutes.
const maxTries = 100

// refused reports whether the primary refused the entry of subject.
func (j *journal) refused(subject string) bool {
	if j.empty() {
		return false
	}
	s := j.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[subject]
	return e != nil && e.tries > 0
}

// refuse enters that the primary refused e, which was claimed before, and that
// it is tried again after a wait from first to last.
func (j *journal) refuse(e *entry, first, last time.Duration) {
	s := j.shard(e.subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.entries[e.subject]
	if held == nil {
		held = e // still on its way, or being merged once more
	}
	held.tries++
	wait := first
	for i := 1; i < held.tries && wait < last; i++ {
		wait *= 2
	}
	held.due = j.time() + int64(min(wait, last))
	if held.tries >= maxTries && held == s.entries[e.subject] {
		s.remove(e.subject)
		j.held.Add(-1)
		j.dropped.Add(1)
	}
}
