package redislimit_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

func TestConformance(t *testing.T) {
	ratelimittest.Run(t, func(t *testing.T, start time.Time) ratelimittest.Engine {
		m, c := mini(t)
		m.SetTime(start)
		return ratelimittest.Engine{Limiter: newLimiter(t, c), Set: m.SetTime}
	}, ratelimittest.Gaps{})
}
