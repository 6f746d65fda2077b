// Package ratelimittest helps to test a service that uses package ratelimit. It has a clock
// that the test moves, a limiter that records its calls and fails or refuses on demand, and a
// check of the header fields.
//
//	clock := ratelimittest.NewClock(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
//	limiter, err := memory.New(memory.Options{Now: clock.Now})
//	...
//	recorder := ratelimittest.NewRecorder(limiter)
//	service := newService(recorder) // what main calls with its engine
//
//	w := httptest.NewRecorder()
//	service.ServeHTTP(w, r)
//	ratelimittest.CheckHeaders(t, w.Header(), ratelimittest.Fields{Limit: 60, Remaining: 59})
//	if got := recorder.Calls()[0].Subject; got != "user:ann" {
//		t.Errorf("the request was counted for %s, want user:ann", got)
//	}
//
//	clock.Advance(time.Minute) // the next window
//	recorder.Fail()            // an outage of the engine
//
// Package testing/synctest is an alternative to the clock: in its bubble time is fake for
// everything, engines included, if they are made inside it. It does not work over a real
// connection, such as to an httptest.Server or to Redis. docs/TESTING.md shows both,
// and a whole test file. To test an engine of your own, use package enginetest.
package ratelimittest

import (
	"sync"
	"time"
)

// A Clock is a time that the test moves. Its method Now is the option Now of package
// memory, and of everything else that reads the time through a function. It is safe for
// concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at start. Quotas count in windows of the UTC clock:
// a start in the middle of a minute, such as 12:00:30, leaves 30 s of it. Engines count
// from 1970 on: at an earlier time, as on the zero Clock, their windows never end.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set sets the time.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// Advance moves the time by d, which may be negative: back.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
