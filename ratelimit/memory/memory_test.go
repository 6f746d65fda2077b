package memory_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

func TestConformance(t *testing.T) {
	ratelimittest.Run(t, newEngine, ratelimittest.Gaps{})
}

func newEngine(t *testing.T, start time.Time) ratelimittest.Engine {
	clock := ratelimittest.NewClock(start)
	l, err := memory.New(memory.Options{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return ratelimittest.Engine{Limiter: l, Set: clock.Set}
}
