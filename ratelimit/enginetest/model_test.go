package enginetest_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// The model passes the suite like every engine.
func TestModel(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, start time.Time) enginetest.Engine {
		clock := ratelimittest.NewClock(start)
		return enginetest.Engine{Limiter: enginetest.NewModel(clock.Now), Set: clock.Set}
	}, enginetest.Gaps{})
}
