package memory

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// A clock that is not set yet begins in 1970, less than a bucket takes to fill after it.
func TestSmoothAfter1970(t *testing.T) {
	clock := ratelimittest.NewClock(time.Unix(0, 0))
	l := newLimiter(t, Options{Now: clock.Now})
	slow := ratelimit.MustPlan("slow", ratelimit.Penalty{}, ratelimit.PerDay(24).Smooth(3))
	for left := int64(2); left >= 0; left-- {
		if d := take(t, l, "a", slow); !d.Allowed() || d.Remaining() != left {
			t.Fatalf("the request is %v and %d remain, want %d", d.Outcome, d.Remaining(), left)
		}
		clock.Set(clock.Now().Add(time.Second))
	}
	if d := take(t, l, "a", slow); d.RetryAfter != time.Hour-3*time.Second {
		t.Errorf("a request without room may be retried after %v, want an hour less three seconds", d.RetryAfter)
	}
}

// The grace holds although the window of a smooth quota begins before 1970.
func TestSmoothGraceAfter1970(t *testing.T) {
	clock := ratelimittest.NewClock(time.Unix(0, 0))
	l := newLimiter(t, Options{Now: clock.Now})
	penalty := ratelimit.DefaultPenalty()
	penalty.Grace = 2 * time.Second
	slow := ratelimit.MustPlan("slow", penalty, ratelimit.PerDay(24).Smooth(1))
	clock.Set(time.Unix(60, 0))
	take(t, l, "a", slow)
	for _, c := range []struct {
		at     time.Time
		struck bool
	}{{time.Unix(70, 0), false}, {time.Unix(71, 0), false}, {time.Unix(72, 0), true}} {
		clock.Set(c.at)
		if d := take(t, l, "a", slow); d.Struck != c.struck {
			t.Errorf("at %v struck: %v, want %v", c.at.UTC(), d.Struck, c.struck)
		}
	}
}

// A grace of a smooth quota is over once its bucket was full, also if no admission since
// took the lock and the clock steps back.
func TestSmoothGraceEndsWithTheBucket(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	penalty := ratelimit.DefaultPenalty()
	penalty.Grace = time.Second
	plan := ratelimit.MustPlan("", penalty, ratelimit.PerMinute(6).Smooth(1))
	l := newLimiter(t, Options{Now: clock.Now})
	for i, step := range []struct {
		at      time.Duration
		outcome ratelimit.Outcome
	}{
		{0, ratelimit.Allowed}, {time.Second, ratelimit.Limited}, {11 * time.Second, ratelimit.Allowed}, {5 * time.Second, ratelimit.Limited},
	} {
		clock.Set(noon.Add(step.at))
		if d := take(t, l, "a", plan); d.Outcome != step.outcome || d.Struck {
			t.Errorf("request %d, after %v, is %v, and a strike: %t; want %v, and no strike", i+1, step.at, d.Outcome, d.Struck, step.outcome)
		}
	}
}
