package memory_test

import (
	"flag"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// histories is set to 40000 for the long run of random histories.
var histories = flag.Int("histories", race.Fewer(300), "random histories in each test that makes some")

func TestConformance(t *testing.T) {
	enginetest.Run(t, newEngine, enginetest.Gaps{})
}

// Histories restart the engine at any point, from what it saves then.
func TestAgreesWithTheModel(t *testing.T) {
	enginetest.Histories(t, newEngine, *histories, 400)
}

func newEngine(t *testing.T, start time.Time) enginetest.Engine {
	clock := enginetest.NewClock(start)
	opts := memory.Options{Now: clock.Now}
	l := newLimiter(t, opts)
	opts.Secret = l.Secret()
	d := disk{}
	return enginetest.Engine{Limiter: l, Set: clock.Set, Restart: func() ratelimit.Limiter {
		save(t, l, d)
		l = newLimiter(t, opts)
		if err := l.Load(slices.Collect(maps.Values(d))); err != nil {
			t.Fatal(err)
		}
		return l
	}}
}
