package console

import "github.com/animalstore/gatehouse/ratelimit"

// places is how many subjects a summary holds.
const places = 8

// A summary counts the most frequent of any number of subjects: the Space-Saving algorithm of
// Metwally, Agrawal and El Abbadi (2005). The zero summary is empty.
type summary struct {
	used   int
	hashes [places]uint64 // of the subjects; apart from them, so that a search reads little memory
	counts [places]count
}

// A count is what is known about one subject.
type count struct {
	subject         string
	plan            *ratelimit.Plan // of the last request
	allowed, denied uint32          // since the subject has this place
	inherited       uint32          // the rank of the subject that had the place before
}

// rank is at least the true count of the subject.
func (c *count) rank() uint32 { return c.inherited + c.allowed + c.denied }

// of returns the count of a subject, to be raised. A subject without a place gets a free one or
// the place of the subject with the lowest rank, and inherits the rank: before, it may have been
// counted up to that often and lost its place.
func (s *summary) of(hash uint64, subject string) *count {
	for i, h := range s.hashes[:s.used] {
		if h == hash && s.counts[i].subject == subject {
			return &s.counts[i]
		}
	}
	i := s.place()
	s.hashes[i] = hash
	s.counts[i] = count{subject: subject, inherited: s.counts[i].rank()}
	return &s.counts[i]
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
