package postgres

import "time"

// Stats say how the connections of a store are used.
type Stats struct {
	Used, Idle, Max int64         // connections
	Waits           int64         // calls that waited for a connection and got one
	WaitTimeouts    int64         // calls that got no connection, since their time was over
	Waited          time.Duration // how long the calls in Waits waited together
}

// Stats returns how the connections are used now, and have been since Open.
func (s *Store) Stats() Stats {
	p := s.pool.Stat()
	return Stats{
		Used: int64(p.AcquiredConns()), Idle: int64(p.IdleConns()), Max: int64(p.MaxConns()),
		Waits: p.EmptyAcquireCount(), WaitTimeouts: p.CanceledAcquireCount(), Waited: p.EmptyAcquireWaitTime(),
	}
}
