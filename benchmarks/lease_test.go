//go:build unix

package benchmarks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/lease"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// sharedTraffic is what requests come for. The keys of each request are chosen in advance.
var sharedTraffic = []struct {
	name string
	keys int
	zipf bool
	plan *ratelimit.Plan
}{
	{"hot", 1, false, plan(roomy, roomy)},
	{"exhausted", 1, false, plan(10, roomy)},
	{"zipf at 100k a minute", 10_000, true, plan(100_000, roomy)},
	{"zipf at 60 a minute", 10_000, true, plan(60, roomy)},
	{"10k leased", 10_000, false, plan(roomy, roomy)},
	{"uniform", 200_000, false, plan(100_000, roomy)},
}

// BenchmarkLease is one decision, by sixteen in parallel for each processor, in memory, in
// Redis, and in front of Redis with package lease. questions are the calls of Redis for 1000
// decisions.
func BenchmarkLease(top *testing.B) {
	client := startRedis(top)
	for _, traffic := range sharedTraffic {
		for _, peer := range []string{"memory", "redislimit", "lease", "evalsha"} {
			var l ratelimit.Limiter
			var asked func() uint64
			top.Run("case="+traffic.name+"/peer="+peer, func(b *testing.B) {
				names := newKeys(scaled(traffic.keys))
				keys := make([]string, 1<<20)
				r := rand.New(rand.NewPCG(1, 2))
				zipf := rand.NewZipf(r, 1.1, 1, uint64(len(names)-1))
				for i := range keys {
					n := r.Uint64N(uint64(len(names)))
					if traffic.zipf {
						n = zipf.Uint64()
					}
					keys[i] = names[n]
				}
				if l == nil { // not with every b.N, so that the last one finds the traffic known
					l, asked = sharedEngine(top, client, peer)
				}
				if traffic.name == "10k leased" {
					giveShares(l, names, traffic.plan)
				}
				before := asked()
				b.ReportAllocs()
				b.SetParallelism(inParallel)
				var next atomic.Uint64
				spent, _ := serverWork(b, client)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					i := next.Add(1) * 7919 * 101
					for pb.Next() {
						i++
						if _, err := l.Take(context.Background(), keys[i%uint64(len(keys))], traffic.plan, 1); err != nil {
							b.Error(err)
							return
						}
					}
				})
				b.StopTimer()
				after, _ := serverWork(b, client)
				b.ReportMetric(float64((after-spent).Nanoseconds())/float64(b.N), "server-ns")
				b.ReportMetric(1000*float64(asked()-before)/float64(b.N), "questions")
			})
		}
	}
}

// BenchmarkLeaseRate makes so many requests a second for ten thousand subjects, Zipf, for five
// seconds after five that are not counted. cpu-ns is the processor time of a request, in this
// process and in Redis, and questions are the calls of Redis for 1000 requests.
func BenchmarkLeaseRate(top *testing.B) {
	client := startRedis(top)
	half := scaled(5 * time.Second)
	p := plan(100_000, roomy)
	for _, rate := range []int{10_000, 50_000, 100_000} {
		for _, peer := range []string{"memory", "redislimit", "lease"} {
			top.Run(fmt.Sprintf("rate=%d/peer=%s", rate, peer), func(b *testing.B) {
				l, asked := sharedEngine(top, client, peer)
				names := newKeys(scaled(10_000))
				send := func(seed uint64) {
					var all sync.WaitGroup
					for i := range inParallel * 2 {
						all.Go(func() {
							zipf := rand.NewZipf(rand.New(rand.NewPCG(seed, uint64(i))), 1.1, 1, uint64(len(names)-1))
							interval := time.Second * inParallel * 2 / time.Duration(rate)
							begin := time.Now()
							for due := time.Duration(0); due < half; due += interval {
								time.Sleep(due - time.Since(begin))
								testcheck.Must(l.Take(context.Background(), names[zipf.Uint64()], p, 1))
							}
						})
					}
					all.Wait()
				}
				for b.Loop() {
					send(1)
					before, spent, own := asked(), redisTime(b, client), processTime(b)
					send(2)
					n := half.Seconds() * float64(rate)
					b.ReportMetric(float64(redisTime(b, client)-spent+processTime(b)-own)/n, "cpu-ns")
					b.ReportMetric(1000*float64(asked()-before)/n, "questions")
				}
			})
		}
	}
}

func redisTime(b *testing.B, client *redis.Client) time.Duration {
	spent, _ := serverWork(b, client)
	return spent
}

// processTime returns the processor time of this process.
func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	testcheck.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// giveShares makes one large request for each key, so that it gets a share: as many requests as
// that takes otherwise are more than Redis decides before the first shares are idle.
func giveShares(l ratelimit.Limiter, keys []string, plan *ratelimit.Plan) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range inParallel {
		all.Go(func() {
			for i := next.Add(1); i <= int64(len(keys)); i = next.Add(1) {
				testcheck.Must(l.Take(context.Background(), keys[i-1], plan, 100))
			}
		})
	}
	all.Wait()
}

// sharedEngine returns an engine, and how often it has asked Redis.
func sharedEngine(b *testing.B, client *redis.Client, peer string) (ratelimit.Limiter, func() uint64) {
	none := func() uint64 { return 0 }
	testcheck.NoError(b, client.FlushAll(context.Background()).Err())
	if peer == "memory" {
		return newMemory(memory.Options{}), none
	}
	if peer == "evalsha" {
		take := newScript("return 1")(b, client)
		return limiterFunc(func(ctx context.Context, key string) error { _, err := take(ctx, key); return err }), none
	}
	shared := testcheck.Must(redislimit.New(client, redislimit.Options{}))
	if peer == "redislimit" {
		return shared, none
	}
	l := testcheck.Must(lease.New(shared))
	b.Cleanup(l.Close)
	return l, func() uint64 { return l.Stats().Asked }
}

// A limiterFunc admits every request.
type limiterFunc func(ctx context.Context, key string) error

func (f limiterFunc) Take(ctx context.Context, subject string, _ *ratelimit.Plan, _ int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, f(ctx, subject)
}
