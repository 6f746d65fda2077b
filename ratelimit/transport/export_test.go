package transport

import "time"

// States returns the number of states that t remembers.
func States(t *Transport) int {
	t.states.mu.Lock()
	defer t.states.mu.Unlock()
	return len(t.states.byKey)
}

// SetJitter replaces the random times that t adds to waits, which are 0 to most.
func SetJitter(t *Transport, random func(most time.Duration) time.Duration) { t.random = random }

// Jitter returns a random time that t adds to a wait.
func Jitter(t *Transport, most time.Duration) time.Duration { return t.random(most) }
