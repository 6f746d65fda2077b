package transport

// Pauses returns the number of pauses that t remembers.
func Pauses(t *Transport) int {
	t.pauses.mu.Lock()
	defer t.pauses.mu.Unlock()
	return len(t.pauses.byKey)
}
