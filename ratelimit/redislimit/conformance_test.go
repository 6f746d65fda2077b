package redislimit_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

func TestConformance(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err == nil {
		testenv.Long(t, "miniredis goes through the suite, as TestConformanceOfServer does")
	}
	enginetest.Run(t, func(t *testing.T, start time.Time) enginetest.Engine {
		m, c := mini(t)
		m.SetTime(start)
		return enginetest.Engine{Limiter: newLimiter(t, c), Set: m.SetTime, Remembers: true}
	}, enginetest.Gaps{})
}
