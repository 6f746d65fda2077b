package redislimit_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

func TestConformance(t *testing.T) {
	newEngine := func(t *testing.T, start time.Time) enginetest.Engine {
		m, c := mini(t)
		m.SetTime(start)
		return enginetest.Engine{Limiter: newLimiter(t, c), Set: m.SetTime, Remembers: true}
	}
	if _, err := exec.LookPath("redis-server"); err == nil {
		newEngine = fewHistories(newEngine) // miniredis takes four times as long
	}
	enginetest.Run(t, newEngine, enginetest.Gaps{})
}

// fewHistories ends the random histories after a part of them, where
// [TestConformanceOfServer] goes through all.
func fewHistories(newEngine enginetest.Factory) enginetest.Factory {
	histories := 0
	return func(t *testing.T, start time.Time) enginetest.Engine {
		t.Helper()
		if strings.Contains(t.Name(), "/agrees_with_the_model/") {
			if histories++; histories > 30 {
				t.Skip("skipped after 30 histories: TestConformanceOfServer goes through all of them")
			}
		}
		return newEngine(t, start)
	}
}
