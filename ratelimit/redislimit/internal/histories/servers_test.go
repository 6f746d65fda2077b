//go:build unix

package histories

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis would log each connection that a test has cut
	os.Exit(m.Run())
}

// newRedisEngine returns an engine with subjects of its own.
func newRedisEngine(t testing.TB, client redis.UniversalClient) *redislimit.Limiter {
	t.Helper()
	l, err := redislimit.New(client, redislimit.Options{Prefix: "test" + strconv.FormatInt(prefixes.Add(1), 10)})
	must(t, err)
	return l
}

var prefixes atomic.Int64

func TestServer(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	for seed := range uint64(10) {
		check(t, newRedisEngine(t, c), options{seed: seed, callers: 12})
	}
}

func TestCluster(t *testing.T) {
	c := clientOfCluster(t, redistest.StartCluster(t))
	for seed := range uint64(5) {
		check(t, newRedisEngine(t, c), options{seed: seed, subjects: 5})
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
			if engines[i], err = redislimit.New(clientOf(t, s), prefix); err != nil {
				t.Fatal(err)
			}
		}
		check(t, alternating{engines[0], engines}, options{seed: seed})
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

func (a alternating) Lease(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64, terms engine.Terms) (ratelimit.Decision, error) {
	return a.engines[rand.IntN(2)].Lease(ctx, subject, plan, cost, terms)
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
		check(t, newRedisEngine(t, c), options{seed: seed, callers: 4, calls: 100, subjects: 4, errors: true})
		cancel()
		cutter.Wait()
	}
}

// clientOf returns a client that is closed when the test ends.
func clientOf(t testing.TB, s *redistest.Server) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, ReadTimeout: time.Minute})
	t.Cleanup(func() { c.Close() })
	return c
}

func clientOfCluster(t testing.TB, c *redistest.Cluster) *redis.ClusterClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), ReadTimeout: time.Minute})
	t.Cleanup(func() { client.Close() })
	return client
}
