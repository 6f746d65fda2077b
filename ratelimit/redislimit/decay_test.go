package redislimit_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

// Strikes decay on the server as in the model, to the second: on the very second,
// several at once, with the rest of a decay kept, and after the clock stepped
// back.
func TestDecayAgreesWithModel(t *testing.T) {
	m, c := mini(t)
	clock := enginetest.NewClock(time.Date(2026, time.March, 1, 12, 0, 30, 250_000_000, time.UTC))
	l, model := newLimiter(t, c), enginetest.NewModel(clock.Now)
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{
		Strikes: 20, Decay: 10 * time.Second, Ban: time.Minute, Growth: 2, Max: time.Hour, Forgive: time.Hour,
	}, ratelimit.PerDay(1))
	for i, step := range []time.Duration{
		0, 0, 1, 1, 1, 1, 1, // one is admitted, then six strikes
		25, 6, 9, // two forgotten and five seconds kept; one more; none
		1, 1, 1, 1, 1, 10, 9, 1, // on the second
		-3, 9, 1, 1, -7, -1, 10, 20, 30, // back and on
		100, 0, 0, 10, 0, 0, 0, 39, 1,
	} {
		clock.Set(clock.Now().Add(step * time.Second))
		m.SetTime(clock.Now())
		want, err := model.Take(ctx, "a", plan, 1)
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.Take(ctx, "a", plan, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got.Outcome != want.Outcome || got.StrikesLeft != want.StrikesLeft {
			t.Fatalf("request %d, %ds later: %v with %d strikes left, want %v with %d",
				i, int(step), got.Outcome, got.StrikesLeft, want.Outcome, want.StrikesLeft)
		}
	}
}
