package enginetest

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

func testAligned(e *engineTest) {
	p := plan(ratelimit.PerMinute(1))
	e.want("the first in the minute", e.take(p), allowed, 0)
	e.advance(29*time.Second + 749*time.Millisecond)
	e.want("a millisecond before the minute ends", e.take(p), limited, 0)
	e.advance(time.Millisecond)
	e.want("when the minute ends", e.take(p), allowed, 0)
	e.advance(59 * time.Second)
	e.want("within the next minute", e.take(p), limited, 0)
}

func testRetryAfter(e *engineTest) {
	p := plan(ratelimit.PerMinute(1))
	e.take(p)
	d := e.take(p)
	if d.Allowed() {
		e.Fatal("the second request against a limit of 1 was admitted")
	}
	e.advance(time.Duration(d.RetryAfterSeconds()) * time.Second)
	if d := e.take(p); !d.Allowed() {
		e.Errorf("after waiting for Retry-After the request is %v for another %v, want allowed", d.Outcome, d.RetryAfter)
	}
}

func testPlanChange(e *engineTest) {
	small := plan(ratelimit.PerHour(5), ratelimit.PerDay(10))
	large := plan(ratelimit.PerHour(50), ratelimit.PerDay(100))
	for range 4 {
		e.take(small)
	}
	e.want("the usage is kept and the limit is new", e.take(large), allowed, 45)
	e.want("and back", e.take(small), limited, 0)
	other := plan(ratelimit.PerDay(7))
	e.want("a plan with one window in common", e.take(other), allowed, 1)
	e.want("the window that it did not have goes on", e.take(large), allowed, 43)
}

func testClockBack(e *engineTest) {
	p := plan(ratelimit.PerMinute(2), ratelimit.PerDay(1000))
	for _, step := range []time.Duration{time.Millisecond, time.Second, 31 * time.Second, time.Hour, 24 * time.Hour, 400 * 24 * time.Hour} {
		name := "back by " + step.String()
		e.takeN(name, p, 1)
		e.takeN(name, p, 1)
		e.advance(-step)
		d := e.takeN(name, p, 1)
		e.want(name, d, limited, 0)
		if d.RetryAfter > 2*time.Minute {
			e.Errorf("%s: the client must wait for %v, want at most two windows", name, d.RetryAfter)
		}
		e.advance(time.Duration(d.RetryAfterSeconds()) * time.Second)
		if d := e.takeN(name, p, 1); !d.Allowed() {
			e.Errorf("%s: after waiting for Retry-After the request is %v, want allowed", name, d.Outcome)
		}
	}
}
