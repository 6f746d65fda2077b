package server

// Stats are the connections of a server. Open and Idle are those of now, the others
// only grow.
type Stats struct {
	Open    int   // open connections
	Idle    int   // those of them without a running request
	Refused int64 // connections closed at once because their network has too many
	Evicted int64 // idle connections closed to make room for new ones
	Waited  int64 // connections that waited because every open one had a running request
}

// Stats returns the present numbers. They are zero before Serve.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	l := s.limited
	s.mu.Unlock()
	if l == nil {
		return Stats{}
	}
	stats := Stats{Refused: l.refused.total.Load(), Evicted: l.evicted.total.Load(), Waited: l.waiting.total.Load()}
	l.mu.Lock()
	defer l.mu.Unlock()
	stats.Open, stats.Idle = l.open, l.idle.len
	return stats
}
