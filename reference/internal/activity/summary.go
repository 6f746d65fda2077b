package activity

// places is how many subjects a summary holds.
const places = 32

// A summary counts the most frequent of any number of subjects: the Space-Saving
// algorithm. The zero summary is empty.
type summary struct {
	used   int
	hashes [places]uint64 // of the subjects; apart from them, so that a search reads little memory
	counts [places]count
}

// A count is what is known about one subject.
type count struct {
	subject         string
	allowed, denied uint32 // since the subject has this place
	inherited       uint32 // the sum of the subjects that had the place before
}

// rank is at least the true count of the subject.
func (c *count) rank() uint32 { return c.inherited + c.allowed + c.denied }

// count counts one decision about a subject. A subject without a place gets a free one
// or that of the subject with the lowest rank, and inherits the rank: before, it may
// have been counted up to that often and lost its place.
func (s *summary) count(hash uint64, subject string, allowed bool) {
	i := s.find(hash, subject)
	if i < 0 {
		i = s.place()
		s.hashes[i] = hash
		s.counts[i] = count{subject: subject, inherited: s.counts[i].rank()}
	}
	if allowed {
		s.counts[i].allowed++
	} else {
		s.counts[i].denied++
	}
}

// find returns the place of a subject, or -1.
func (s *summary) find(hash uint64, subject string) int {
	for i, h := range s.hashes[:s.used] {
		if h == hash && s.counts[i].subject == subject {
			return i
		}
	}
	return -1
}

// place returns a free place, or the one with the lowest rank.
func (s *summary) place() int {
	if s.used < places {
		s.used++
		return s.used - 1
	}
	lowest := 0
	for i := range s.counts {
		if s.counts[i].rank() < s.counts[lowest].rank() {
			lowest = i
		}
	}
	return lowest
}

// clear empties the summary and drops the names.
func (s *summary) clear() {
	clear(s.counts[:s.used])
	s.used = 0
}
