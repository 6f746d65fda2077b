//go:build unix

package redislimit_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Times last until 2106 in the script, also where a smooth quota has the length of its
// window and 2^31 more.
func TestTakeAllUntil2106(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	clock := newScriptClock(t, time.Now())
	c.AddHook(clock)
	plan := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(10), ratelimit.PerHour(100), ratelimit.PerMonth(1000))
	for _, year := range []int{2026, 2038, 2039, 2070, 2102} {
		clock.Set(time.Date(year, time.March, 1, 12, 0, 30, 0, time.UTC))
		l, decisions := newLimiter(t, c), make([]ratelimit.Decision, 2)
		err := l.TakeAll(ctx, []ratelimit.Charge{{Subject: "a", Plan: plan, Cost: 1}, {Subject: "b", Plan: lasting(10), Cost: 1}}, decisions)
		if err != nil || !decisions[0].Allowed() || decisions[0].Remaining() != 9 {
			t.Errorf("in %d: %+v, %v, want allowed with 9 left", year, decisions[0], err)
		}
	}
}
