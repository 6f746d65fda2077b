package redislimit_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

func TestConformance(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err == nil {
		testenv.Long(t, "miniredis goes through the suite, as TestConformanceOfServer does")
	}
	enginetest.Run(t, few(32, func(t *testing.T, start time.Time) enginetest.Engine {
		m, c := mini(t)
		m.SetTime(start)
		return enginetest.Engine{Limiter: newLimiter(t, c), Set: m.SetTime, Remembers: true}
	}), enginetest.Gaps{})
}

// few makes no more histories than the first ones, which find what is common, unless tests may
// take long.
func few(most int, newEngine func(*testing.T, time.Time) enginetest.Engine) func(*testing.T, time.Time) enginetest.Engine {
	histories := 0
	return func(t *testing.T, start time.Time) enginetest.Engine {
		if strings.Contains(t.Name(), "/agrees_with_the_model/") {
			if histories++; histories > most {
				testenv.Long(t, "the first histories find what is common")
			}
		}
		return newEngine(t, start)
	}
}
