package ratelimit

// Queues returns the number of subjects that requests wait for.
func Queues(w *Waiter) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queues)
}
