//go:build unix

package redislimit_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

func TestTakeAllOfCluster(t *testing.T) {
	t.Parallel()
	testTakeAllInOrder(t, newLimiter(t, clientOfCluster(t, redistest.StartCluster(t))))
}

func TestTakeAllOfRing(t *testing.T) {
	t.Parallel()
	c := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": redistest.Start(t).Addr, "two": redistest.Start(t).Addr}, ReadTimeout: time.Minute})
	t.Cleanup(func() { c.Close() })
	testTakeAllInOrder(t, newLimiter(t, c))
}

// testTakeAllInOrder has groups of callers with subjects on several servers. Nobody is
// charged for a request that is refused, and no limit is exceeded.
func testTakeAllInOrder(t *testing.T, l *redislimit.Limiter) {
	t.Helper()
	const callers, each, limit = 8, 20, 50
	own, shared := lasting(1000), lasting(limit)
	var admitted [callers]int64
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			charges := []ratelimit.Charge{{Subject: fmt.Sprint("caller ", i), Plan: own, Cost: 1}, {Subject: "company", Plan: own, Cost: 2}, {Subject: "everybody", Plan: shared, Cost: 1}}
			decisions := make([]ratelimit.Decision, 3)
			for range each {
				if err := l.TakeAll(ctx, charges, decisions); err != nil {
					t.Error(err)
					return
				}
				switch d := &decisions[engine.Deciding(decisions)]; d.Outcome {
				case ratelimit.Allowed:
					admitted[i]++
				case ratelimit.Limited:
					if decisions[0].Outcome != ratelimit.Spared || decisions[1].Outcome != ratelimit.Spared || decisions[2].Outcome != ratelimit.Limited {
						t.Errorf("got %v, %v and %v, want that the last one refuses", decisions[0].Outcome, decisions[1].Outcome, decisions[2].Outcome)
					}
				}
			}
		})
	}
	wg.Wait()
	var sum int64
	for i, n := range admitted {
		sum += n
		if charged := used(t, l, fmt.Sprint("caller ", i), 1000); charged != n {
			t.Errorf("caller %d was charged %d units for %d requests that were admitted", i, charged, n)
		}
	}
	if sum != limit { // the last charge is never given back
		t.Errorf("%d requests were admitted against a limit of %d", sum, limit)
	}
	if charged := used(t, l, "company", 1000); charged != 2*sum {
		t.Errorf("the company was charged %d units for %d requests of 2", charged, sum)
	}
	if charged := used(t, l, "everybody", limit); charged != limit {
		t.Errorf("everybody was charged %d units, want the limit of %d", charged, limit)
	}
}

// Times last until 2106 in the script, also where a smooth quota has the length of its
// window and 2^31 more.
func TestTakeAllUntil2106(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	clock := newScriptClock(t, time.Now())
	c.AddHook(clock)
	plan := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(10), ratelimit.PerHour(100), ratelimit.PerMonth(1000))
	for _, year := range []int{2026, 2038, 2039, 2070, 2102} {
		clock.Set(time.Date(year, time.March, 1, 12, 0, 30, 0, time.UTC))
		l, decisions := newLimiter(t, c), make([]ratelimit.Decision, 2)
		err := l.TakeAll(ctx, []ratelimit.Charge{{Subject: "a", Plan: plan, Cost: 1}, {Subject: "b", Plan: lasting(10), Cost: 1}}, decisions)
		if err != nil || !decisions[0].Allowed() || decisions[0].Remaining() != 9 {
			t.Errorf("in %d: %+v, %v, want allowed with 9 left", year, decisions[0], err)
		}
	}
}
