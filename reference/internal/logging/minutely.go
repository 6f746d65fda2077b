package logging

import (
	"sync"
	"time"
)

// Minutely lets one message in a minute through and counts the others, for libraries
// that write one for each attempt. The zero value works. It is safe for concurrent use.
type Minutely struct {
	mu      sync.Mutex
	passed  time.Time // time of the last message that was let through
	dropped int       // messages since then
}

// Pass reports whether a message is to be written now, and how many were not since the
// last one.
func (m *Minutely) Pass() (dropped int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.Sub(m.passed) < time.Minute {
		m.dropped++
		return 0, false
	}
	dropped, m.passed, m.dropped = m.dropped, now, 0
	return dropped, true
}
