//go:build unix

package redisrate_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/redisrate"
)

// allWindows are the usual windows and the longest, in which the suite counts
// where no clock can be set.
var allWindows = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, fixedwindow.MaxLength}

func TestServer(t *testing.T) {
	client := clientOf(t, redistest.Start(t))
	enginetest.Run(t, func(t *testing.T, _ time.Time) enginetest.Engine {
		must(t, client.FlushAll(context.Background()).Err())
		return onServer(t, redis_rate.NewLimiter(client))
	}, gaps)
}

func TestCluster(t *testing.T) {
	testenv.Long(t, "starts a cluster")
	client := clientOfCluster(t, redistest.StartCluster(t))
	enginetest.Run(t, func(t *testing.T, _ time.Time) enginetest.Engine {
		err := client.ForEachMaster(context.Background(), func(ctx context.Context, master *redis.Client) error {
			return master.FlushAll(ctx).Err()
		})
		must(t, err)
		return onServer(t, redis_rate.NewLimiter(client))
	}, gaps)
}

func onServer(t *testing.T, rate *redis_rate.Limiter) enginetest.Engine {
	t.Helper()
	l, err := redisrate.New(rate, redisrate.Options{Windows: allWindows})
	must(t, err)
	return enginetest.Engine{Limiter: l}
}

// On a server the clock moves by itself, and Remaining is exact all the same.
func TestServerCountsDown(t *testing.T) {
	client := clientOf(t, redistest.Start(t))
	l, err := redisrate.New(redis_rate.NewLimiter(client), redisrate.Options{Windows: allWindows})
	must(t, err)
	for _, limit := range []int64{7, 60, 333, 1000} {
		p := plan(ratelimit.Quota{Limit: limit, Window: fixedwindow.MaxLength})
		for i := range limit {
			d, err := l.Take(context.Background(), p.String(), p, 1)
			must(t, err)
			if got := d.Remaining(); !d.Allowed() || got != limit-1-i {
				t.Fatalf("request %d of %d: got %v with %d remaining, want allowed with %d", i+1, limit, d.Outcome, got, limit-1-i)
			}
		}
		d, err := l.Take(context.Background(), p.String(), p, 1)
		must(t, err)
		unit := fixedwindow.MaxLength / time.Duration(limit)
		if d.Allowed() || d.RetryAfter > unit || d.RetryAfter < unit-time.Minute {
			t.Errorf("over the limit of %d: got %v to wait %v, want limited and just under %v", limit, d.Outcome, d.RetryAfter, unit)
		}
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
