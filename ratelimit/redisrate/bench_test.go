package redisrate_test

import (
	"context"
	"testing"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redisrate"
)

// An answering client is a Redis that takes no time: it has one answer.
type answering struct {
	*redis.Client
	answer []any
}

func (a answering) EvalSha(ctx context.Context, _ string, _ []string, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetVal(a.answer)
	return cmd
}

// BenchmarkTake measures what the engine adds to redis_rate.
func BenchmarkTake(b *testing.B) {
	const subject = "owner-of-a-key-whose-name-is-0123456789abcdef"
	ctx := context.Background()
	client := redis.NewClient(new(redis.Options))
	defer client.Close()

	for _, bench := range []struct {
		name   string
		answer []any
	}{
		{"allowed", []any{int64(1), int64(59), "-1", "0.99999994039536"}},
		{"denied", []any{int64(0), int64(0), "0.99987", "59.999870061874"}},
	} {
		rate := redis_rate.NewLimiter(answering{client, bench.answer})
		b.Run(bench.name+"/redis_rate alone", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rate.Allow(ctx, subject, redis_rate.PerMinute(60)); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(bench.name+"/engine", func(b *testing.B) {
			limiter, err := redisrate.New(rate, redisrate.Options{})
			if err != nil {
				b.Fatal(err)
			}
			p := plan(ratelimit.PerMinute(60))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := limiter.Take(ctx, subject, p, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
