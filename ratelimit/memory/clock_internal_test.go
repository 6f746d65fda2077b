package memory

import (
	"testing"
	"testing/synctest"
	"time"
)

// The engine notices a step of the wall clock within ten milliseconds.
func TestStepOfTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		c.init(nil)
		for _, step := range []time.Duration{time.Hour, -time.Hour} {
			c.now()
			c.offset.Add(-int64(step)) // the wall clock has stepped, and the clock has not noticed
			time.Sleep(measureInterval)
			if got, want := c.now(), time.Now().UnixNano(); got != want {
				t.Errorf("after a step of %v the clock is %v off", step, time.Duration(got-want))
			}
		}
	})
}
