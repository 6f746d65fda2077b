package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// While decisions are many, the time is kept by a timer. It is late by a
// millisecond at most, for as long as decisions go on.
func TestBusyClockTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, memory.Options{})
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
