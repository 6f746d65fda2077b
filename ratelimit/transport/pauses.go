package transport

import (
	"sync"
	"time"
)

// probeInterval is how often one request is sent during a long pause, to notice that
// it has ended early: a ban was ended by hand, or the client has a larger plan.
const probeInterval = 15 * time.Minute

// A pause is a time in which the requests of a key are not sent.
type pause struct {
	until   time.Time
	probe   time.Time // from when on one request is sent to see whether the pause holds
	status  int       // of the response that began it
	refusal refusal
}

// pauses holds the pauses of all keys. The zero value is ready for use.
type pauses struct {
	mu    sync.Mutex
	byKey map[string]pause
	sweep int // the number of pauses at which those that are over are removed
}

// at returns the pause of key that is in force at the time now. If the request may be
// sent in spite of it, to see whether it holds, probe is true: for one request in each
// probeInterval.
func (p *pauses) at(key string, now time.Time) (current pause, paused, probe bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	current, paused = p.byKey[key]
	if !paused {
		return pause{}, false, false
	}
	if !now.Before(current.until) {
		delete(p.byKey, key)
		return pause{}, false, false
	}
	if now.Before(current.probe) {
		return current, true, false
	}
	current.probe = now.Add(probeInterval)
	p.byKey[key] = current
	return current, true, true
}

// begin pauses key. Of two pauses the one that ends later counts, except that the
// answer to a probe replaces the pause that it was sent in.
func (p *pauses) begin(key string, next pause, now time.Time, probe bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !probe && p.byKey[key].until.After(next.until) {
		return
	}
	next.probe = now.Add(probeInterval)
	if p.byKey == nil {
		p.byKey = make(map[string]pause)
	}
	p.byKey[key] = next
	if len(p.byKey) > max(p.sweep, 100) {
		for k, old := range p.byKey {
			if !now.Before(old.until) {
				delete(p.byKey, k)
			}
		}
		p.sweep = 2 * len(p.byKey)
	}
}

// end ends the pause of key.
func (p *pauses) end(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, key)
}
