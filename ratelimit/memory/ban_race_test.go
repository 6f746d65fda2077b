package memory_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// Once a request met a ban by hand, so does every later one, though Ban has not
// returned yet.
func TestBanIsSeenByAllFromThenOn(t *testing.T) {
	const subjects = 20_000
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerDay(1_000_000))
	for i := range subjects {
		take(t, l, fmt.Sprint(i), plan)
	}
	var arrived atomic.Int64
	together := func(i int) {
		for arrived.Add(1); arrived.Load() < 2*int64(i+1); {
			runtime.Gosched()
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range subjects {
			name := fmt.Sprint(i)
			together(i)
			if err := l.Ban(ctx, name, time.Hour); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range subjects {
		name := fmt.Sprint(i)
		together(i)
		for banned := false; !banned; {
			d, err := l.Take(ctx, name, plan, 1_000_000) // too much
			if err != nil {
				t.Fatal(err)
			}
			banned = d.Outcome == ratelimit.Banned
			if d := take(t, l, name, plan); banned && d.Outcome != ratelimit.Banned {
				t.Fatalf("subject %d: banned, and then %v", i, d.Outcome)
			}
		}
	}
	wg.Wait()
}
