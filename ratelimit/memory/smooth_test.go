package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var smoothPlan = ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerHour(600).Smooth(100))

// A subject that has used half of its burst is held through a flood of new subjects, until
// half of it is back. One that has used less makes room, and the one whose bucket is full
// first.
func TestSmoothIsHeld(t *testing.T) {
	for _, restart := range []bool{false, true} {
		clock := enginetest.NewClock(noon)
		opts := memory.Options{MaxSubjects: 500, Now: clock.Now}
		l := newLimiter(t, opts)
		charge := func(subject string, cost int64) ratelimit.Decision {
			d, err := l.Take(ctx, subject, smoothPlan, cost)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		for i := range 100 {
			charge(fmt.Sprint("half ", i), 50)
			charge(fmt.Sprint("less ", i), 30)
		}
		if restart {
			d := disk{}
			save(t, l, d)
			opts.Secret = l.Secret()
			l = newLimiter(t, opts)
			for key, r := range d {
				if err := l.Load([]memory.Record{r}); err != nil {
					t.Fatalf("record %x: %v", key, err)
				}
			}
		}
		for i := range 3000 {
			charge(fmt.Sprint("flood ", i), 10)
		}
		for i := range 100 {
			if d := charge(fmt.Sprint("half ", i), 1); d.Remaining() != 49 {
				t.Fatalf("restart %v: after a flood %d remain to a subject that has used half, want 49", restart, d.Remaining())
			}
		}
		clock.Set(noon.Add(2 * time.Minute)) // 20 units are back
		if refused := flood(t, l, 1000); refused > 0 {
			t.Errorf("restart %v: %d subjects were refused, though all others could make room", restart, refused)
		}
	}
}

// A subject whose burst was lowered is held once it has used half of the lower one.
func TestSmoothIsHeldByTheLowestBurst(t *testing.T) {
	l := newLimiter(t, memory.Options{MaxSubjects: 100, Now: enginetest.NewClock(noon).Now})
	lower := ratelimit.MustPlan("lower", ratelimit.Penalty{}, ratelimit.PerHour(600).Smooth(40))
	for range 20 {
		take(t, l, "a", smoothPlan)
	}
	take(t, l, "a", lower)
	for i := range 3000 {
		if _, err := l.Take(ctx, fmt.Sprint("flood ", i), smoothPlan, 30); err != nil {
			t.Fatal(err)
		}
	}
	if d := take(t, l, "a", lower); d.Remaining() != 18 {
		t.Errorf("after a flood %d remain, want 18", d.Remaining())
	}
}

// A plan with fixed windows takes the fast path again once the bucket of an earlier plan
// is full, and its usage is as if there had been none.
func TestFixedAfterSmooth(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	fixed := ratelimit.MustPlan("fixed", ratelimit.Penalty{}, ratelimit.PerHour(10))
	take(t, l, "a", smoothPlan)
	for left := int64(9); left >= 6; left-- {
		if d := take(t, l, "a", fixed); d.Remaining() != left {
			t.Fatalf("%d remain, want %d", d.Remaining(), left)
		}
		clock.Set(clock.Now().Add(4 * time.Second))
	}
	if n := testing.AllocsPerRun(100, func() { take(t, l, "b", smoothPlan) }); n > 0 {
		t.Errorf("a decision under a smooth quota allocates %v times, want none", n)
	}
}

// A clock that is not set yet begins in 1970, less than a bucket takes to fill after it.
func TestSmoothAfter1970(t *testing.T) {
	clock := enginetest.NewClock(time.Unix(0, 0))
	l := newLimiter(t, memory.Options{Now: clock.Now})
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
	clock := enginetest.NewClock(time.Unix(0, 0))
	l := newLimiter(t, memory.Options{Now: clock.Now})
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
	clock := enginetest.NewClock(noon)
	penalty := ratelimit.DefaultPenalty()
	penalty.Grace = time.Second
	plan := ratelimit.MustPlan("", penalty, ratelimit.PerMinute(6).Smooth(1))
	l := newLimiter(t, memory.Options{Now: clock.Now})
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
