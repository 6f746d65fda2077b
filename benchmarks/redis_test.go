//go:build unix

package benchmarks

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	throttledredis "github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// A redisEngine decides one request. An error means that it could not.
type redisEngine func(ctx context.Context, key string) (admitted bool, err error)

// redisEngines share one Redis among processes. PING and a script that does
// nothing show what a round trip costs, and one that counts what a script costs
// that limits one key.
var redisEngines = []struct {
	peer string
	new  func(b *testing.B, client *redis.Client) redisEngine
}{
	{"ping", func(_ *testing.B, client *redis.Client) redisEngine {
		return func(ctx context.Context, _ string) (bool, error) { return true, client.Ping(ctx).Err() }
	}},
	{"evalsha", newScript("return 1")},
	{"floor", newScript("redis.call('SET', KEYS[1], (redis.call('GET', KEYS[1]) or 0) + 1, 'EX', 60) return 1")},
	{"gatehouse", newRedisGatehouse},
	{"ulule", newRedisUlule},
	{"redis_rate", newRedisRate},
	{"throttled", newRedisThrottled},
}

func newScript(text string) func(*testing.B, *redis.Client) redisEngine {
	return func(_ *testing.B, client *redis.Client) redisEngine {
		sha := testcheck.Must(client.ScriptLoad(context.Background(), text).Result())
		return func(ctx context.Context, key string) (bool, error) {
			return true, client.EvalSha(ctx, sha, []string{key}).Err()
		}
	}
}

func newRedisGatehouse(_ *testing.B, client *redis.Client) redisEngine {
	return redisTakes(client, "", plan(roomy, roomy))
}

func redisTakes(client *redis.Client, prefix string, p *ratelimit.Plan) redisEngine {
	l := testcheck.Must(redislimit.New(client, redislimit.Options{Prefix: prefix}))
	return func(ctx context.Context, key string) (bool, error) {
		d, err := l.Take(ctx, key, p, 1)
		return d.Allowed(), err
	}
}

func newRedisUlule(_ *testing.B, client *redis.Client) redisEngine {
	quota := func(prefix string, window time.Duration) *limiter.Limiter {
		store := testcheck.Must(ululeredis.NewStoreWithOptions(client, limiter.StoreOptions{Prefix: prefix}))
		return limiter.New(store, limiter.Rate{Limit: roomy, Period: window})
	}
	m, d := quota("ulule:minute", minuteWindow), quota("ulule:day", dayWindow)
	return func(ctx context.Context, key string) (bool, error) {
		if c, err := m.Get(ctx, key); err != nil || c.Reached {
			return false, err
		}
		c, err := d.Get(ctx, key)
		return !c.Reached, err
	}
}

// newRedisRate gives each quota a key of its own, since redis_rate keeps the
// limits apart by nothing else.
func newRedisRate(_ *testing.B, client *redis.Client) redisEngine {
	l := redis_rate.NewLimiter(client)
	m := redis_rate.Limit{Rate: roomy, Burst: roomy, Period: minuteWindow}
	d := redis_rate.Limit{Rate: roomy, Burst: roomy, Period: dayWindow}
	return func(ctx context.Context, key string) (bool, error) {
		if r, err := l.Allow(ctx, key+":minute", m); err != nil || r.Allowed == 0 {
			return false, err
		}
		r, err := l.Allow(ctx, key+":day", d)
		return err == nil && r.Allowed > 0, err
	}
}

func newRedisThrottled(b *testing.B, client *redis.Client) redisEngine {
	m := redisThrottledQuota(client, "throttled:minute:", roomy, minuteWindow)
	d := redisThrottledQuota(client, "throttled:day:", roomy, dayWindow)
	return func(ctx context.Context, key string) (bool, error) {
		if ok, err := m(ctx, key); err != nil || !ok {
			return false, err
		}
		return d(ctx, key)
	}
}

func redisThrottledQuota(client *redis.Client, prefix string, limit int, window time.Duration) redisEngine {
	l := newThrottledLimiter(testcheck.Must(throttledredis.NewCtx(client, prefix)), limit, window)
	return func(ctx context.Context, key string) (bool, error) {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return !limited, err
	}
}

// inParallel is how many requests are under way at once for each processor.
const inParallel = 16

// BenchmarkRedis is one decision about both quotas over the loopback interface,
// by one client that waits for each answer, and by sixteen in parallel for each
// processor. ns/op is time for all of them together. server-µs is what the server
// spends in commands for a decision, and commands how many there are; failed-% is
// what could not be decided.
func BenchmarkRedis(b *testing.B) {
	client := startRedis(b)
	for _, s := range []scene{{name: "hot", keys: 1}, {name: "10k", keys: 10_000}} {
		for _, parallel := range []bool{false, true} {
			clients := "/clients=1"
			if parallel {
				clients = "/clients=16"
			}
			for _, e := range redisEngines {
				var take redisEngine
				keys := newKeys(scaled(s.keys))
				b.Run("case="+s.name+clients+"/peer="+e.peer, func(b *testing.B) {
					if take == nil { // not with every b.N
						take = e.new(b, client)
						fillRedis(b, take, keys)
					}
					b.ReportAllocs()
					b.ResetTimer()
					spent, reads := serverWork(b, client)
					var failed int
					if parallel {
						failed = takeInParallel(b, take, keys)
					} else {
						failed = takeAlone(b, take, keys)
					}
					spentAfter, readsAfter := serverWork(b, client)
					n := float64(b.N)
					b.ReportMetric(float64((spentAfter-spent).Nanoseconds())/1000/n, "server-µs")
					b.ReportMetric(float64(readsAfter-reads)/n, "round-trips")
					b.ReportMetric(100*float64(failed)/n, "failed-%")
				})
			}
		}
	}
}

// fillRedis has the engine connect, load its script, and meet every key.
func fillRedis(b *testing.B, take redisEngine, keys []string) {
	var wg sync.WaitGroup
	for some := range slices.Chunk(keys, (len(keys)+inParallel-1)/inParallel) {
		wg.Go(func() {
			for _, key := range some {
				if _, err := take(context.Background(), key); err != nil {
					b.Errorf("filling: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func takeAlone(b *testing.B, take redisEngine, keys []string) (failed int) {
	ctx, o := context.Background(), order(0)
	for b.Loop() {
		if admitted, err := take(ctx, keys[o.next(uint64(len(keys)))]); err != nil || !admitted {
			failed++
		}
	}
	return failed
}

func takeInParallel(b *testing.B, take redisEngine, keys []string) int {
	var goroutines, failed atomic.Uint64
	b.SetParallelism(inParallel)
	b.RunParallel(func(pb *testing.PB) {
		ctx, o, n := context.Background(), order(goroutines.Add(1)<<40), uint64(0)
		for pb.Next() {
			if admitted, err := take(ctx, keys[o.next(uint64(len(keys)))]); err != nil || !admitted {
				n++
			}
		}
		failed.Add(n)
	})
	return int(failed.Load())
}

// startRedis starts a server, and returns a client of it.
func startRedis(b *testing.B) *redis.Client {
	b.Helper()
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(b).Addr})
	b.Cleanup(func() { client.Close() })
	return client
}

// serverWork returns the processor time that the server's main thread has spent,
// and how often it has read from a connection, which is once a round trip.
func serverWork(b *testing.B, client *redis.Client) (spent time.Duration, reads int) {
	info := testcheck.Must(client.InfoMap(context.Background(), "cpu", "stats").Result())
	for _, field := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		seconds, err := strconv.ParseFloat(info["CPU"][field], 64)
		if err != nil {
			b.Fatalf("redis-server says %q for %s", info["CPU"][field], field)
		}
		spent += time.Duration(seconds * float64(time.Second))
	}
	reads = testcheck.Must(strconv.Atoi(info["Stats"]["total_reads_processed"]))
	return spent, reads
}
