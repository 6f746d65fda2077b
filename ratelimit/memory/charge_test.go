package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

func TestCharge(t *testing.T) {
	type units = [ratelimit.MaxQuotas]int64
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(10), ratelimit.PerDay(100))
	charge := func(u units, at time.Time) {
		t.Helper()
		if err := l.Charge(ctx, "a", plan, u, at); err != nil {
			t.Fatal(err)
		}
	}
	left := func(minute, day int64) {
		t.Helper()
		d, err := l.Peek(ctx, "a", plan)
		if err != nil {
			t.Fatal(err)
		}
		if d.States[0].Remaining != minute || d.States[1].Remaining != day {
			t.Fatalf("%d and %d are left, want %d of the minute and %d of the day", d.States[0].Remaining, d.States[1].Remaining, minute, day)
		}
	}
	charge(units{3, 20}, noon)
	left(7, 80)
	take(t, l, "a", plan)
	left(6, 79)
	charge(units{5, 5}, noon.Add(-time.Minute)) // the minute is over, the day is not
	left(6, 74)
	charge(units{50, 0}, noon) // more than fits
	left(0, 74)
	if d := take(t, l, "a", plan); d.Outcome != ratelimit.Limited || d.StrikesLeft != 10 {
		t.Errorf("after a charge over the limit: %v with %d strikes left, want limited with 10", d.Outcome, d.StrikesLeft)
	}
	clock.Set(noon.Add(time.Minute))
	charge(units{ratelimit.MaxLimit, ratelimit.MaxLimit}, clock.Now())
	charge(units{1 << 62, 1 << 62}, clock.Now()) // no count goes over the largest
	left(0, 0)
	if err := l.Charge(ctx, "a", plan, units{-1}, noon); !errors.Is(err, ratelimit.ErrInvalid) {
		t.Errorf("a negative charge: %v, want ErrInvalid", err)
	}
	if err := l.Charge(ctx, "a", nil, units{1}, noon); !errors.Is(err, ratelimit.ErrInvalid) {
		t.Errorf("a charge under no plan: %v, want ErrInvalid", err)
	}
}
