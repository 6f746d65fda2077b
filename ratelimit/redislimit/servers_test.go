//go:build unix

package redislimit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/histories"
	"github.com/animalstore/gatehouse/ratelimit/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// The interpreter and the numbers of a real server, with a clock that can be set.
func TestConformanceOfServer(t *testing.T) {
	s := redistest.Start(t)
	ratelimittest.Run(t, func(t *testing.T, start time.Time) ratelimittest.Engine {
		c := redis.NewClient(&redis.Options{Addr: s.Addr})
		t.Cleanup(func() { c.Close() })
		clock := newScriptClock(t, start)
		c.AddHook(clock)
		return ratelimittest.Engine{Limiter: newLimiter(t, c), Set: clock.Set}
	}, ratelimittest.Gaps{})
}

// A server as it is, with its own clock.
func TestConformanceOfServersClock(t *testing.T) {
	c := redistest.Start(t).Client()
	ratelimittest.Run(t, func(t *testing.T, start time.Time) ratelimittest.Engine {
		return ratelimittest.Engine{Limiter: newLimiter(t, c)}
	}, ratelimittest.Gaps{})
}

func TestConformanceOfCluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	ratelimittest.Run(t, func(t *testing.T, start time.Time) ratelimittest.Engine {
		c := cluster.Client()
		clock := newScriptClock(t, start)
		c.AddHook(clock)
		return ratelimittest.Engine{Limiter: newLimiter(t, c), Set: clock.Set}
	}, ratelimittest.Gaps{})
}

func TestConformanceOfRing(t *testing.T) {
	addrs := map[string]string{"one": redistest.Start(t).Addr, "two": redistest.Start(t).Addr}
	c := redis.NewRing(&redis.RingOptions{Addrs: addrs})
	t.Cleanup(func() { c.Close() })
	ratelimittest.Run(t, func(t *testing.T, start time.Time) ratelimittest.Engine {
		return ratelimittest.Engine{Limiter: newLimiter(t, c)}
	}, ratelimittest.Gaps{})
}

func TestHistoriesOfServer(t *testing.T) {
	c := redistest.Start(t).Client()
	for seed := range uint64(10) {
		histories.Check(t, newLimiter(t, c), histories.Options{Seed: seed, Callers: 12})
	}
}

func TestHistoriesOfCluster(t *testing.T) {
	c := redistest.StartCluster(t).Client()
	for seed := range uint64(5) {
		histories.Check(t, newLimiter(t, c), histories.Options{Seed: seed, Subjects: 5})
	}
}

// Two processes, as it were: the order holds for both.
func TestHistoriesOfTwoEngines(t *testing.T) {
	s := redistest.Start(t)
	for seed := range uint64(5) {
		prefix := redislimit.Options{Prefix: fmt.Sprint("shared", seed)}
		var engines [2]*redislimit.Limiter
		for i := range engines {
			var err error
			if engines[i], err = redislimit.New(s.Client(), prefix); err != nil {
				t.Fatal(err)
			}
		}
		histories.Check(t, alternating{engines[0], engines}, histories.Options{Seed: seed})
	}
}

// An alternating engine sends a call to either of two.
type alternating struct {
	*redislimit.Limiter
	engines [2]*redislimit.Limiter
}

func (a alternating) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	return a.engines[rand.IntN(2)].Take(ctx, subject, plan, cost)
}

// Connections break now and then. A call that failed may have had an effect, or
// not; all others are explained by one order.
func TestHistoriesWithCuts(t *testing.T) {
	s := redistest.Start(t)
	proxy := redistest.StartProxy(t, s.Addr)
	c := redis.NewClient(&redis.Options{Addr: proxy.Addr})
	t.Cleanup(func() { c.Close() })
	const cuts = 4 // each call without an answer doubles the orders there are
	for seed := range uint64(5) {
		end, cancel := context.WithCancel(ctx)
		var cutter sync.WaitGroup
		cutter.Go(func() {
			for i := range cuts {
				proxy.CutAfter(500 + i*777)
				select {
				case <-end.Done():
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		})
		histories.Check(t, newLimiter(t, c), histories.Options{Seed: seed, Callers: 4, Calls: 100, Subjects: 4, Errors: true})
		cancel()
		cutter.Wait()
	}
}

// A server in cluster mode refuses subjects of several slots in one call. A client
// of one server finds out, and goes on without.
func TestOneServerInClusterMode(t *testing.T) {
	c := redistest.Start(t, "--cluster-enabled", "yes").Client()
	if err := c.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	l := newLimiter(t, c)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := l.Peek(ctx, "ready", lasting(1)); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	plan := lasting(10)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for range 10 {
				if d, err := l.Take(ctx, fmt.Sprint(i), plan, 1); err != nil || !d.Allowed() {
					t.Errorf("%v, %v", d.Outcome, err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 50 {
		if n := used(t, l, fmt.Sprint(i), 10); n != 10 {
			t.Errorf("subject %d was charged %d times, want 10", i, n)
		}
	}
}

func TestForeignValues(t *testing.T) {
	testForeignValues(t, redistest.Start(t).Client())
}
