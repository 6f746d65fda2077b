package inflight

import (
	"container/list"
	"sync"
)

// shard holds some of the subjects. Its mutex is held for a few map operations, never
// while a request runs or waits.
type shard struct {
	mu       sync.Mutex
	subjects map[string]subject // with a request that runs
	peak     int                // the most subjects since the map was made
	stats    Stats              // Subjects is not kept
}

// A subject has a request that runs. If any request waits, then as many run as may.
type subject struct {
	running int
	limit   int
	queue   *list.List // of granted; nil until a request waits
}

// granted is closed when a request that waits may run.
type granted chan struct{}

// keptPeak is the number of subjects up to which a map is kept when it is empty. Maps
// do not shrink.
const keptPeak = 64

// enter counts a request of name if fewer than limit run. If not, it puts the request
// into the queue, which has room for queue requests, and returns its place.
func (s *shard) enter(name string, limit, queue int) (d Decision, place *list.Element) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.subjects[name]
	u.limit = limit
	s.admitWaiting(&u) // the limit may be higher than before
	switch {
	case u.running < limit:
		d.Admitted = true
		u.running++
		s.stats.Running++
		s.stats.Admitted++
	case u.waiting() < queue:
		if u.queue == nil {
			u.queue = list.New()
		}
		place = u.queue.PushBack(make(granted))
		s.stats.Waiting++
	default:
		s.stats.Refused++
	}
	d.Limit, d.Running = limit, u.running
	s.put(name, u)
	return d, place
}

// leave ends a request of name, and lets the first that waits run.
func (s *shard) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.subjects[name]
	u.running--
	s.stats.Running--
	s.admitWaiting(&u)
	s.put(name, u)
}

// endWait takes a request out of the queue unless it was admitted meanwhile, and reports
// whether it was. It also returns how many requests of the subject run.
func (s *shard) endWait(name string, place *list.Element) (admitted bool, running int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.subjects[name]
	select {
	case <-place.Value.(granted):
		return true, u.running
	default:
		u.queue.Remove(place)
		s.stats.Waiting--
		s.stats.Refused++
		return false, u.running
	}
}

// admitWaiting lets requests that wait run, the first first, as far as the limit allows.
func (s *shard) admitWaiting(u *subject) {
	for u.running < u.limit && u.waiting() > 0 {
		close(u.queue.Remove(u.queue.Front()).(granted))
		u.running++
		s.stats.Waiting--
		s.stats.Running++
		s.stats.Admitted++
	}
}

// put keeps u, or forgets it if nothing runs. Nothing waits then either.
func (s *shard) put(name string, u subject) {
	if u.running > 0 {
		if s.subjects == nil {
			s.subjects = make(map[string]subject)
		}
		s.subjects[name] = u
		s.peak = max(s.peak, len(s.subjects))
		return
	}
	delete(s.subjects, name)
	if len(s.subjects) == 0 && s.peak > keptPeak {
		s.subjects, s.peak = nil, 0
	}
}

func (s *shard) read() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Subjects = len(s.subjects)
	return stats
}

func (u *subject) waiting() int {
	if u.queue == nil {
		return 0
	}
	return u.queue.Len()
}
