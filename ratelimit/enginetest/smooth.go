package enginetest

import (
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/ratelimit"
)

// wantSmooth fails unless the decision is as promised. Times are from now; wait is exact.
func (e *engineTest) wantSmooth(step string, d ratelimit.Decision, outcome ratelimit.Outcome, remaining int64, full, wait time.Duration) {
	e.Helper()
	e.want(step, d, outcome, remaining)
	if want := roundUp(e.now.Add(full)).Unix(); d.Reset() != want {
		e.Errorf("%s: the reset is at %d, want %d, when nothing is used", step, d.Reset(), want)
	}
	if d.RetryAfter != wait {
		e.Errorf("%s: the client must wait for %v, want %v", step, d.RetryAfter, wait)
	}
}

func testSmooth(e *engineTest) {
	const ms, sec = time.Millisecond, time.Second
	p := plan(ratelimit.PerMinute(60).Smooth(3))
	e.wantSmooth("the first of the burst", e.take(p), allowed, 2, sec, 0)
	e.wantSmooth("the rest of the burst", e.takeN("a", p, 2), allowed, 0, 3*sec, 0)
	if d := e.take(p); d.Limit() != 3 {
		e.Errorf("the limit is shown as %d, want the burst, 3", d.Limit())
	}
	e.wantSmooth("after the burst", e.take(p), limited, 0, 3*sec, sec)
	e.wantSmooth("a request of two units", e.takeN("a", p, 2), limited, 0, 3*sec, 2*sec)
	e.advance(sec - time.Microsecond)
	e.wantSmooth("a microsecond before a unit is back", e.take(p), limited, 0, 2*sec+time.Microsecond, time.Microsecond)
	e.advance(time.Microsecond)
	e.wantSmooth("when a unit is back", e.take(p), allowed, 0, 3*sec, 0)
	e.advance(1500 * ms)
	e.wantSmooth("two units after one and a half seconds", e.takeN("a", p, 2), limited, 1, 1500*ms, 500*ms)
	e.wantSmooth("one unit then", e.take(p), allowed, 0, 2500*ms, 0)
	e.advance(time.Hour)
	e.wantSmooth("the bucket holds no more than the burst", e.takeN("a", p, 3), allowed, 0, 3*sec, 0)
	e.wantSmooth("and is empty then", e.take(p), limited, 0, 3*sec, sec)

	third := plan(ratelimit.Quota{Limit: 3, Window: sec}.Smooth(1)) // a unit comes back in a time that is no whole number of anything
	e.want("one of three a second", e.takeN("b", third, 1), allowed, 0)
	d := e.takeN("b", third, 1)
	if d.Outcome != limited || d.RetryAfter != 333_334*time.Microsecond {
		e.Errorf("one of three a second: the request is %v for %v, want limited for 333.334ms", d.Outcome, d.RetryAfter)
	}
	e.advance(d.RetryAfter)
	e.want("a client that waits so long", e.takeN("b", third, 1), allowed, 0)
	const most = gcra.MaxRate * int64(fixedwindow.MaxLength/sec)
	large := plan(ratelimit.Quota{Limit: most, Window: fixedwindow.MaxLength}.Smooth(most))
	e.want("the largest", e.takeN("c", large, most), allowed, 0)
	e.want("the largest once more", e.takeN("c", large, 1), limited, 0)
	_, err := e.engine.Take(ctx, "a", p, 4)
	e.wantInvalid("a cost over the burst", err, ratelimit.ErrCostExceedsLimit)
}
