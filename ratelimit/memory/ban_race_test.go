package memory_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Once a request met a ban by hand, so does every later one, though Ban has not
// returned yet.
func TestBanIsSeenByAllFromThenOn(t *testing.T) {
	subjects := race.Fewer(100_000)
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerDay(1_000_000))
	for i := range subjects {
		take(t, l, fmt.Sprint(i), plan)
	}
	var current atomic.Int64 // the subject that is being banned
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range subjects {
			current.Store(int64(i))
			if err := l.Ban(ctx, fmt.Sprint(i), time.Hour); err != nil {
				t.Error(err)
			}
		}
		current.Store(int64(subjects))
	})
	for i := current.Load(); i < int64(subjects); i = current.Load() {
		name := fmt.Sprint(i)
		d, err := l.Take(ctx, name, plan, 1_000_000) // too much
		if err != nil {
			t.Fatal(err)
		}
		if after := take(t, l, name, plan); d.Outcome == ratelimit.Banned && after.Outcome != ratelimit.Banned {
			t.Fatalf("subject %d: banned, and then %v", i, after.Outcome)
		}
	}
	wg.Wait()
}
