package transport

import (
	"net/http"
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
		allowed, err := c.admit()
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
		again, err := c.learn(resp, allowed)
		if err != nil {
			return nil, err
		}
		if !again {
			return resp, nil
		}
	}
}

// learn notes what resp, to a request that was allowed at the time sent, says about the
// next ones. It returns true if the request is to be sent again, and an error if it was
// refused and cannot be. In both cases it closes the body.
func (c *call) learn(resp *http.Response, sent time.Time) (again bool, err error) {
	now := time.Now()
	said, refused := judge(resp, now)
	if refused {
		c.denials++
		if said.until.IsZero() {
			said.until = now.Add(backoff(c.denials))
		}
	}
	c.states.learn(c.key, said, sent) // before the body, which may take its time
	failing := resp.StatusCode == http.StatusServiceUnavailable && !(idempotent(c.request) && replayable(c.request))
	if !refused || failing { // a service that fails may have begun with the request
		return false, nil
	}
	said.readBody(resp)
	c.states.learn(c.key, said, sent)
	discard(resp.Body)
	if limit := c.impatience(said, now); limit != nil {
		return false, limit
	}
	if !replayable(c.request) {
		return false, c.limitError(said, "the body of the request cannot be sent again, since it has no GetBody", nil)
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
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete,
		"QUERY": // RFC 10008
		return true
	}
	return r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
}
