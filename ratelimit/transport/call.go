package transport

import (
	"net/http"
	"sync"
	"time"
)

// call is one request on its way, over all its attempts.
type call struct {
	*Transport
	request *http.Request
	key     string
	sent    bool          // the request was sent at least once
	denials int           // responses that refused it
	waited  time.Duration // over all attempts
}

// do sends the request until it is served or cannot wait any longer.
func (c *call) do() (*http.Response, error) {
	for {
		probe, err := c.admit()
		if err != nil {
			if !c.sent && c.request.Body != nil {
				c.request.Body.Close()
			}
			return nil, err
		}
		attempt := c.request
		if c.sent {
			if attempt, err = replay(c.request); err != nil {
				return nil, err
			}
		}
		c.sent = true
		resp, err := c.base.RoundTrip(attempt)
		if err != nil || resp == nil {
			return nil, err
		}
		if resp.Body == nil { // which net/http never does, but the bases of tests do
			resp.Body = http.NoBody
		}
		c.notices.read(c.request, resp)
		again, err := c.learn(resp, probe)
		if err != nil {
			return nil, err
		}
		if !again {
			return resp, nil
		}
	}
}

// learn notes what resp says about the next requests. It returns true if the request
// is to be sent again, and an error if it was refused and cannot be. In both cases it
// closes the body.
func (c *call) learn(resp *http.Response, probe bool) (again bool, err error) {
	now := time.Now()
	v := judge(resp, now)
	if !v.refused {
		if probe && resp.StatusCode < 500 {
			c.pauses.end(c.key)
		}
		if v.wait > 0 {
			c.pauses.begin(c.key, pause{until: now.Add(v.wait), status: resp.StatusCode}, now, probe)
		}
		return false, nil
	}
	c.denials++
	if v.wait == 0 {
		v.wait = backoff(c.denials)
	}
	p := pause{until: now.Add(v.wait), status: resp.StatusCode}
	c.pauses.begin(c.key, p, now, probe) // before the body, which may take its time
	if !v.busy {
		p.refusal = readRefusal(resp)
		c.pauses.begin(c.key, p, now, false)
	}
	limit := c.impatience(p, now)
	switch {
	case v.busy && (limit != nil || !replayable(c.request) || !idempotent(c.request)):
		return false, nil // the response of a service that fails is for the caller
	case limit == nil && !replayable(c.request):
		limit = c.limitError(p, "the body of the request cannot be sent again, since it has no GetBody", nil)
	}
	discard(resp.Body)
	if limit != nil {
		return false, limit
	}
	return true, nil
}

// backoff returns how long to wait after the n-th denial of a request if the server
// names no time: one second, doubling up to a minute.
func backoff(n int) time.Duration {
	return min(time.Second<<min(n-1, 6), time.Minute)
}

// replayable reports whether the request can be sent again.
func replayable(r *http.Request) bool {
	return r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
}

// replay returns a copy of the request, which must be replayable, with a body that was
// not read.
func replay(r *http.Request) (*http.Request, error) {
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		again.Body = body
	}
	return again, nil
}

// idempotent reports whether the request may be sent again although it may have been
// processed (RFC 9110 section 9.2.2). A refused request was not, but one that a failing
// service answers may have been.
func idempotent(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
}

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
