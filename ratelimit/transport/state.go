package transport

import (
	"sync"
	"time"

	"github.com/animalstore/gatehouse/apierror"
)

const (
	// probeInterval is how often one request is sent during a long pause or ban, to notice
	// that it has ended early: a ban was ended by hand, or the client has a larger plan.
	probeInterval = 15 * time.Minute

	// firstProbe is when the first one is sent if no request was refused yet. A served
	// request may itself have reserved what its response says is used up, and give most
	// of it back when it is settled.
	firstProbe = time.Minute
)

// A state is what is known of a key, or what one response says of it: its requests are
// free, paused until a time, or banned until a time. The zero value is free.
type state struct {
	until  time.Time // free from then on
	banned bool
	since  time.Time // the response arrived
	probe  time.Time // from when on one request is sent to see whether the state holds

	// Of the response, for errors.
	status  int
	code    apierror.Code
	message string
}

// ask returns the state after a request asks at the time now whether it may be sent, and
// the answer.
func (s state) ask(now time.Time) (next state, allowed bool) {
	switch {
	case !now.Before(s.until):
		return state{}, true
	case now.Before(s.probe):
		return s, false
	}
	s.probe = now.Add(probeInterval)
	return s, true
}

// after returns the state after a response at the time now to a request that was allowed
// at the time sent. If the request knew the state, since it was sent later, the response
// replaces it, unless the service failed and says nothing. Of responses to requests that
// were on their way together a ban counts before a pause, and then the later end.
func (s state) after(response state, sent, now time.Time) state {
	response.since = now
	switch {
	case !now.Before(s.until):
		return response
	case response.until.IsZero() && response.status >= 500:
		return s
	case sent.After(s.since):
		return response
	case s.banned && !response.banned:
		return s
	case s.banned == response.banned && s.until.After(response.until):
		return s
	}
	return response
}

// states holds the states of all keys that are not free. The zero value is ready for use.
// It reads the clock under its lock, so that times have the order of the changes.
type states struct {
	mu    sync.Mutex
	byKey map[string]state
	sweep int // the number of states at which those that are over are removed
}

// ask returns the state of key, whether a request may be sent now, and the time.
func (m *states) ask(key string) (current state, allowed bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now = time.Now()
	current, allowed = m.byKey[key].ask(now)
	m.set(key, current, now)
	return current, allowed, now
}

// learn notes a response to a request of key that was allowed at the time sent.
func (m *states) learn(key string, response state, sent time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.set(key, m.byKey[key].after(response, sent, now), now)
}

func (m *states) set(key string, s state, now time.Time) {
	if !now.Before(s.until) {
		delete(m.byKey, key)
		return
	}
	if m.byKey == nil {
		m.byKey = make(map[string]state)
	}
	m.byKey[key] = s
	if len(m.byKey) > max(m.sweep, 100) {
		for k, old := range m.byKey {
			if !now.Before(old.until) {
				delete(m.byKey, k)
			}
		}
		m.sweep = 2 * len(m.byKey)
	}
}
