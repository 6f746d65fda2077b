//go:build unix

package benchmarks

import (
	"context"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// everybody is the second subject, which all requests share. Its plan is never used up.
const everybody = "everybody, under a name of just as many bytes"

// pairOf returns the charges of a key and of everybody, and room for the decisions.
func pairOf(p *ratelimit.Plan) ([]ratelimit.Charge, []ratelimit.Decision) {
	return []ratelimit.Charge{{Plan: p, Cost: 1}, {Subject: everybody, Plan: plan(roomy, roomy), Cost: 1}}, make([]ratelimit.Decision, 2)
}

// BenchmarkPairs is one decision about one subject, or about two, with two quotas each.
func BenchmarkPairs(b *testing.B) {
	engines := []struct {
		peer string
		new  func(l *memory.Limiter, p *ratelimit.Plan) engine
	}{
		{"gatehouse", takeFrom},
		{"pair", func(l *memory.Limiter, p *ratelimit.Plan) engine {
			ctx := context.Background()
			charges, decisions := pairOf(p)
			return func(key string) bool {
				charges[0].Subject = key
				err := l.TakeAll(ctx, charges, decisions)
				return err == nil && decisions[0].Allowed()
			}
		}},
	}
	for _, s := range []scene{scenes[0], scenes[1], scenes[3]} { // hot, 10k and denied
		for _, e := range engines {
			b.Run("case="+s.name+"/peer="+e.peer, func(b *testing.B) {
				s := s.scaled()
				take := e.new(newMemory(memory.Options{}), plan(s.minute, s.day))
				s.fill(take)
				b.ReportAllocs()
				s.run(b, take)
			})
		}
	}
}

// BenchmarkPairsRedis is the same in Redis.
func BenchmarkPairsRedis(b *testing.B) {
	client := startRedis(b)
	for _, s := range []scene{scenes[1], scenes[3]} { // 10k and denied
		p := plan(s.minute, s.day)
		for _, parallel := range []bool{false, true} {
			clients := "/clients=1"
			if parallel {
				clients = "/clients=16"
			}
			for _, e := range []struct {
				peer string
				new  func(l *redislimit.Limiter) redisEngine
			}{
				{"gatehouse", func(l *redislimit.Limiter) redisEngine {
					return func(ctx context.Context, key string) (bool, error) {
						d, err := l.Take(ctx, key, p, 1)
						return d.Allowed(), err
					}
				}},
				{"pair", func(l *redislimit.Limiter) redisEngine {
					both, _ := pairOf(p)
					return func(ctx context.Context, key string) (bool, error) {
						charges, decisions := slices.Clone(both), make([]ratelimit.Decision, 2)
						charges[0].Subject = key
						err := l.TakeAll(ctx, charges, decisions)
						return decisions[0].Allowed(), err
					}
				}},
			} {
				runPairsRedis(b, "case="+s.name+clients+"/peer="+e.peer, client, s.scaled(), e.new, parallel)
			}
		}
	}
}

func runPairsRedis(b *testing.B, name string, client *redis.Client, s scene, newTake func(*redislimit.Limiter) redisEngine, parallel bool) {
	var take redisEngine
	keys := newKeys(s.keys)
	b.Run(name, func(b *testing.B) {
		if take == nil { // not with every b.N
			l := testcheck.Must(redislimit.New(client, redislimit.Options{Prefix: name}))
			take = newTake(l)
			fillRedis(b, take, keys)
		}
		b.ReportAllocs()
		b.ResetTimer()
		var denied int
		if parallel {
			denied = takeInParallel(b, take, keys)
		} else {
			denied = takeAlone(b, take, keys)
		}
		s.check(b, b.N, b.N-denied)
	})
}
