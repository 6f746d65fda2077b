//go:build unix

package histories_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/integration/histories"
	"github.com/animalstore/gatehouse/ratelimit/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

func TestServer(t *testing.T) {
	c := redistest.Start(t).Client()
	for seed := range uint64(10) {
		histories.Check(t, newRedisEngine(t, c), histories.Options{Seed: seed, Callers: 12})
	}
}

func TestCluster(t *testing.T) {
	c := redistest.StartCluster(t).Client()
	for seed := range uint64(5) {
		histories.Check(t, newRedisEngine(t, c), histories.Options{Seed: seed, Subjects: 5})
	}
}

// Two processes, as it were: the order holds for both.
func TestTwoEnginesOfOneServer(t *testing.T) {
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
func TestServerWithCuts(t *testing.T) {
	s := redistest.Start(t)
	proxy := redistest.StartProxy(t, s.Addr)
	c := redis.NewClient(&redis.Options{Addr: proxy.Addr})
	t.Cleanup(func() { c.Close() })
	const cuts = 4 // each call without an answer doubles the orders there are
	for seed := range uint64(5) {
		end, cancel := context.WithCancel(t.Context())
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
		histories.Check(t, newRedisEngine(t, c), histories.Options{Seed: seed, Callers: 4, Calls: 100, Subjects: 4, Errors: true})
		cancel()
		cutter.Wait()
	}
}
