package ratelimittest_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// The model passes the suite like every engine.
func TestModel(t *testing.T) {
	ratelimittest.Run(t, func(t *testing.T, start time.Time) ratelimittest.Engine {
		clock := ratelimittest.NewClock(start)
		return ratelimittest.Engine{Limiter: ratelimittest.NewModel(clock.Now), Set: clock.Set}
	}, ratelimittest.Gaps{})
}
