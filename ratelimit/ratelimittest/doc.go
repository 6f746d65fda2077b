// Package ratelimittest helps to test a service that uses package ratelimit: a clock that the
// test moves, a limiter that records what it is asked and fails or refuses on demand,
// and a check of the header fields.
//
//	clock := ratelimittest.NewClock(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
//	engine, err := memory.New(memory.Options{Now: clock.Now})
//	...
//	recorder := ratelimittest.NewRecorder(engine)
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
// connection, such as that of an httptest.Server or of Redis. docs/TESTING.md shows both,
// and a whole test file. To test an engine of your own, use package enginetest.
package ratelimittest
