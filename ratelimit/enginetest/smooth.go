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

func testSmoothAndFixed(e *engineTest) {
	const sec = time.Second
	p := plan(ratelimit.PerMinute(5), ratelimit.PerMinute(60).Smooth(2), ratelimit.PerHour(9))
	left := func(step string, d ratelimit.Decision, minute, smooth, hour int64) {
		e.Helper()
		if d.States[0].Remaining != minute || d.States[1].Remaining != smooth || d.States[2].Remaining != hour {
			e.Fatalf("%s: %d, %d and %d are left, want %d of the minute, %d of the burst and %d of the hour", step,
				d.States[0].Remaining, d.States[1].Remaining, d.States[2].Remaining, minute, smooth, hour)
		}
	}
	left("a request is charged to all", e.takeN("a", p, 2), 3, 0, 7)
	d := e.take(p)
	e.wantSmooth("the smooth quota refuses", d, limited, 0, 2*sec, sec)
	left("and nothing is charged", d, 3, 0, 7)
	e.advance(2 * sec)
	left("two seconds later", e.takeN("a", p, 2), 1, 0, 5)
	e.advance(2 * sec)
	d = e.takeN("a", p, 2)
	e.want("the minute refuses", d, limited, 1)
	left("and the smooth quota is not charged", d, 1, 2, 5)
	if want := time.Duration(60-34)*sec - 250*time.Millisecond; d.RetryAfter != want {
		e.Errorf("the minute refuses: the client must wait for %v, want %v", d.RetryAfter, want)
	}
	left("one unit fits", e.take(p), 0, 1, 4)
	d = e.takeN("a", p, 2)
	e.want("the quota that refuses the longest is shown", d, limited, 0)
	if d.Limit() != 5 {
		e.Errorf("of two quotas that refuse, that with the limit %d is shown, want the minute, 5, which refuses the longest", d.Limit())
	}
	fixed, smooth := plan(ratelimit.PerMinute(9)), plan(ratelimit.PerMinute(60).Smooth(9))
	e.want("windows of the same length are counted apart", e.takeN("a", smooth, 1), allowed, 7)
	e.want("the minute that it had", e.takeN("a", fixed, 1), allowed, 2)
	e.want("a smooth quota counts requests under plans with it", e.takeN("a", smooth, 1), allowed, 6)
	e.want("the fixed window counts all of them", e.takeN("a", fixed, 1), allowed, 0)
}

func testSmoothPlanChange(e *engineTest) {
	small, large := plan(ratelimit.PerMinute(60).Smooth(5)), plan(ratelimit.PerMinute(120).Smooth(60))
	e.want("all of a small burst", e.takeN("a", small, 5), allowed, 0)
	e.want("five seconds are ten units of a faster rate", e.takeN("a", large, 1), allowed, 49)
	e.want("and back", e.takeN("a", small, 1), limited, 0)
	e.want("all of a large burst", e.takeN("a", large, 49), allowed, 0)
	d := e.takeN("a", small, 1)
	e.want("30 seconds are more than the small burst", d, limited, 0)
	if d.RetryAfter != 26*time.Second {
		e.Errorf("30 seconds are more than the small burst: the client must wait for %v, want 26s", d.RetryAfter)
	}
	slow := plan(ratelimit.PerMinute(1).Smooth(1))
	e.want("a minute is owed", e.takeN("b", slow, 1), allowed, 0)
	if e.engine.Set != nil {
		e.advance(59 * time.Second)
		e.want("the usage is kept until it is back", e.takeN("b", slow, 1), limited, 0)
		e.advance(time.Second)
		e.want("then", e.takeN("b", slow, 1), allowed, 0)
	}
}

func testSmoothStrikes(e *engineTest) {
	p := ratelimit.MustPlan("strict", penalty(), ratelimit.PerMinute(60).Smooth(2))
	e.takeN("a", p, 2)
	for range 3 {
		e.wantStruck("within the grace", e.takeN("a", p, 2), false)
	}
	e.advance(time.Second)
	e.want("a unit is back", e.take(p), allowed, 0)
	e.advance(time.Second)
	for range 3 {
		e.wantStruck("after the grace, which an admission does not begin anew", e.takeN("a", p, 2), true)
	}
	e.want("an admission", e.take(p), allowed, 0)
	if d := e.takeN("a", p, 2); d.StrikesLeft != penalty().Strikes-1 {
		e.Errorf("after an admission and one more strike %d are left, want %d", d.StrikesLeft, penalty().Strikes-1)
	}
	for range 2 {
		e.takeN("a", p, 2)
	}
	d := e.takeN("a", p, 2)
	e.want("one strike too many", d, banned, 0)
	e.wantStruck("one strike too many", d, true)

	// A unit takes a little longer than a microsecond, and all of them minutes more than the window.
	p = ratelimit.MustPlan("long", penalty(), ratelimit.Quota{Limit: 31_622_400_000_000, Window: fixedwindow.MaxLength}.Smooth(31_622_400_000_000))
	e.takeN("beside a window", plan(ratelimit.PerMinute(9)), 1)
	for _, subject := range []string{"alone", "beside a window"} {
		e.takeN(subject, p, 31_622_400_000_000)
		for range 3 {
			e.wantStruck("within the grace, and nothing is back", e.takeN(subject, p, 1), false)
		}
	}
}
