package ratelimit

import (
	"net/http"
	"time"
)

// SetDisconnectWait changes how long a handler made by New waits for net/http to
// notice that the client is gone.
func SetDisconnectWait(h http.Handler, d time.Duration) { h.(*limitHandler).disconnectWait = d }

// Queues returns the number of subjects that requests wait for.
func Queues(w *Waiter) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queues)
}
