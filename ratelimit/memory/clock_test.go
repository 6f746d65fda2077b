package memory

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

func TestSystemClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, Options{})
		plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(1))
		take(t, l, "a", plan)
		d := take(t, l, "a", plan)
		if d.Allowed() || d.Time != time.Now().UnixNano() {
			t.Fatalf("got %+v at %d", d, time.Now().UnixNano())
		}
		time.Sleep(d.RetryAfter - time.Nanosecond)
		if d := take(t, l, "a", plan); d.Allowed() {
			t.Error("admitted a nanosecond before the minute ended")
		}
		time.Sleep(time.Nanosecond)
		if d := take(t, l, "a", plan); !d.Allowed() {
			t.Error("not admitted when the minute ended")
		}
	})
}

// When decisions are many, a timer keeps the time. That changes the speed and nothing
// else.
func TestBusyClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, Options{})
		roomy := ratelimit.MustPlan("roomy", ratelimit.Penalty{}, ratelimit.PerMinute(1<<30))
		tight := ratelimit.MustPlan("tight", ratelimit.Penalty{}, ratelimit.PerMinute(1))
		for range 3 {
			for range 10_000 {
				take(t, l, "busy", roomy)
			}
			take(t, l, "a", tight)
			d := take(t, l, "a", tight)
			time.Sleep(d.RetryAfter - 300*time.Microsecond)
			for range 10_000 {
				if d := take(t, l, "a", tight); d.Allowed() {
					t.Fatal("admitted before the minute ended")
				}
				take(t, l, "busy", roomy)
			}
			time.Sleep(300 * time.Microsecond)
			if d := take(t, l, "a", tight); !d.Allowed() {
				t.Error("not admitted when the minute ended, since the kept time was late")
			}
			time.Sleep(time.Minute)
			if d := take(t, l, "b", roomy); d.Time != time.Now().UnixNano() {
				t.Errorf("after a rest the engine's clock is %v late", time.Duration(time.Now().UnixNano()-d.Time))
			}
		}
	})
}

func TestBusyClockIsNeverEarly(t *testing.T) {
	l := newLimiter(t, Options{})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(1<<30))
	for range 300_000 {
		d := take(t, l, "a", plan)
		if now := time.Now().UnixNano(); d.Time > now+int64(time.Millisecond) { // the wall clock itself may be slewed
			t.Fatalf("decided at %d, and now it is %d", d.Time, now)
		}
	}
}

// Outside of 1970 to 2103 the clock stands still. That is no reason to panic.
func TestClockOutOfRange(t *testing.T) {
	lastYear := time.Date(2103, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	for _, year := range []int{1, 1500, 1900, 1969, 2104, 2200, 2500, 9999} {
		clock := ratelimittest.NewClock(time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC))
		l := newLimiter(t, Options{Now: clock.Now})
		plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.Quota{Limit: 1, Window: fixedwindow.MaxLength})
		if d := take(t, l, "a", plan); year < 1970 && d.Time != 0 || year > 2103 && d.Time < lastYear {
			t.Errorf("in %d it is %v by the engine's clock", year, time.Unix(0, d.Time).UTC())
		}
		for range 20 {
			if d := take(t, l, "a", plan); d.Allowed() || d.RetryAfter <= 0 {
				t.Fatalf("in %d: %+v", year, d)
			}
		}
	}
}

// A table that was filled while the clock was years ahead has room again two
// windows after the clock was set right. It grants nothing twice before that.
func TestFullWhileTheClockWasAhead(t *testing.T) {
	for _, c := range []struct {
		quota ratelimit.Quota
		idle  bool
	}{
		{ratelimit.PerMinute(2), false},
		{ratelimit.PerMinute(2), true},
		{ratelimit.PerMinute(1).Smooth(1), false},
		{ratelimit.PerMinute(1).Smooth(1), true},
	} {
		t.Run(fmt.Sprintf("%v, idle: %v", c.quota, c.idle), func(t *testing.T) {
			plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, c.quota)
			clock := ratelimittest.NewClock(noon.AddDate(10, 0, 0))
			l := newLimiter(t, Options{MaxSubjects: 50, Now: clock.Now})
			for _, now := range []time.Time{clock.Now(), clock.Now().Add(time.Minute)} {
				clock.Set(now)
				for i := range 50 {
					take(t, l, fmt.Sprint(i), plan)
				}
			}
			for _, now := range []time.Time{clock.Now(), noon} {
				clock.Set(now)
				if _, err := l.Take(ctx, "new", plan, 1); !errors.Is(err, ratelimit.ErrUnavailable) {
					t.Errorf("at %v, one more than fits: error %v, want ErrUnavailable", now, err)
				}
			}
			for i := 0; i < 50 && !c.idle; i++ {
				if d, err := l.Peek(ctx, fmt.Sprint(i), plan); err != nil || d.States[0].Remaining != c.quota.Limit-1 {
					t.Errorf("subject %d, which had used one unit, has %d left of %v, and error %v", i, d.States[0].Remaining, c.quota, err)
				}
			}
			clock.Set(noon.Add(2 * time.Minute))
			take(t, l, "new", plan)
		})
	}
}

// The engine notices a step of the wall clock within ten milliseconds.
func TestStepOfTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		c.init(nil)
		for _, step := range []time.Duration{time.Hour, -time.Hour} {
			c.now()
			c.offset.Add(-int64(step)) // the wall clock has stepped, and the clock has not noticed
			time.Sleep(measureInterval)
			if got, want := c.now(), instant(time.Now().UnixNano()); got != want {
				t.Errorf("after a step of %v the clock is %v off", step, time.Duration(got-want))
			}
		}
	})
}

// While decisions are many, the time is kept by a timer. It is late by a
// millisecond at most, for as long as decisions go on.
func TestBusyClockTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, Options{})
		roomy := ratelimit.MustPlan("roomy", ratelimit.Penalty{}, ratelimit.PerMinute(1<<30))
		for range 10_000 {
			take(t, l, "busy", roomy)
		}
		kept := 0
		for range 10_000 {
			time.Sleep(300 * time.Microsecond)
			late := time.Now().UnixNano() - take(t, l, "busy", roomy).Time
			if late < 0 || late > int64(time.Millisecond) {
				t.Fatalf("the engine's clock is %v late, want at most a millisecond", time.Duration(late))
			}
			if late > 0 {
				kept++
			}
		}
		if kept == 0 {
			t.Error("the clock was never late: no timer keeps the time")
		}
	})
}
