//go:build unix

package benchmarks

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/sethvargo/go-limiter/memorystore"
	"golang.org/x/time/rate"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// smoothEngines decide about one quota of so many requests a day, all of which can be
// made at once: gatehouse by a smooth quota, and by a fixed window, and the peers by a token
// bucket.
var smoothEngines = []struct {
	peer string
	new  func(tb testing.TB, limit int) engine
}{
	{"gatehouse", func(tb testing.TB, limit int) engine {
		return takeFrom(newMemory(memory.Options{}), smoothPlan(limit))
	}},
	{"fixed", func(tb testing.TB, limit int) engine {
		return takeFrom(newMemory(memory.Options{}), fixedPlan(limit))
	}},
	{"sethvargo", func(tb testing.TB, limit int) engine {
		return sethvargoQuota(tb, memorystore.Config{}, limit, dayWindow)
	}},
	{"xtime", newSmoothXTime},
	{"throttled", func(_ testing.TB, limit int) engine { return newThrottledQuota(0, limit, dayWindow) }},
}

func smoothPlan(limit int) *ratelimit.Plan {
	return onePlan(ratelimit.PerDay(int64(limit)).Smooth(int64(limit)))
}

func fixedPlan(limit int) *ratelimit.Plan { return onePlan(ratelimit.PerDay(int64(limit))) }

func onePlan(q ratelimit.Quota) *ratelimit.Plan {
	penalty := ratelimit.DefaultPenalty()
	penalty.Grace = time.Hour
	return ratelimit.MustPlan("plan", penalty, q)
}

func newSmoothXTime(_ testing.TB, limit int) engine {
	var callers sync.Map
	return func(key string) bool {
		v, ok := callers.Load(key)
		if !ok {
			v, _ = callers.LoadOrStore(key, rate.NewLimiter(rate.Limit(float64(limit)/dayWindow.Seconds()), limit))
		}
		return v.(*rate.Limiter).Allow()
	}
}

// BenchmarkSmooth is one decision about a smooth quota.
func BenchmarkSmooth(b *testing.B) {
	for _, s := range []scene{{name: "hot", keys: 1}, {name: "10k", keys: 10_000}, {name: "denied", keys: 1, denied: true}} {
		for _, e := range smoothEngines {
			b.Run("case="+s.name+"/peer="+e.peer, func(b *testing.B) {
				s, limit := s.scaled(), roomy
				if s.denied {
					limit = 1
				}
				take := e.new(b, limit)
				s.fill(take)
				b.ReportAllocs()
				s.run(b, take)
			})
		}
	}
}

// smoothRedisEngines are smoothEngines that share one Redis among processes.
var smoothRedisEngines = []struct {
	peer string
	new  func(b *testing.B, client *redis.Client) redisEngine
}{
	{"gatehouse", func(b *testing.B, client *redis.Client) redisEngine {
		return redisTakes(client, "smooth", smoothPlan(roomy))
	}},
	{"fixed", func(b *testing.B, client *redis.Client) redisEngine {
		return redisTakes(client, "fixed", fixedPlan(roomy))
	}},
	{"redis_rate", func(_ *testing.B, client *redis.Client) redisEngine {
		l, limit := redis_rate.NewLimiter(client), redis_rate.Limit{Rate: roomy, Burst: roomy, Period: dayWindow}
		return func(ctx context.Context, key string) (bool, error) {
			r, err := l.Allow(ctx, key+":smooth", limit)
			return err == nil && r.Allowed > 0, err
		}
	}},
	{"throttled", func(b *testing.B, client *redis.Client) redisEngine {
		return redisThrottledQuota(client, "throttled:smooth:", math.MaxInt32, dayWindow)
	}},
}

// BenchmarkSmoothRedis is one decision about a smooth quota in Redis.
func BenchmarkSmoothRedis(b *testing.B) {
	client := startRedis(b)
	keys := newKeys(scaled(10_000))
	for _, parallel := range []bool{false, true} {
		clients := "clients=1"
		if parallel {
			clients = "clients=16"
		}
		for _, e := range smoothRedisEngines {
			var take redisEngine
			b.Run(clients+"/peer="+e.peer, func(b *testing.B) {
				if take == nil { // not with every b.N
					take = e.new(b, client)
					fillRedis(b, take, keys)
				}
				b.ReportAllocs()
				b.ResetTimer()
				spent, _ := serverWork(b, client)
				if parallel {
					takeInParallel(b, take, keys)
				} else {
					takeAlone(b, take, keys)
				}
				after, _ := serverWork(b, client)
				b.ReportMetric(float64((after-spent).Nanoseconds())/1000/float64(b.N), "server-µs")
			})
		}
	}
}
