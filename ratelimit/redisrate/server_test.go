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
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/internal/testenv"
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
	l := testcheck.Must(redisrate.New(rate, redisrate.Options{Windows: allWindows}))
	return enginetest.Engine{Limiter: l}
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
