package redisrate

import "time"

// SetClock replaces the clock of this machine.
func (l *Limiter) SetClock(now func() time.Time) { l.now = now }
