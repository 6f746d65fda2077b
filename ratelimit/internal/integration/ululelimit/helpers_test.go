package ululelimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"
	ulumemory "github.com/ulule/limiter/v3/drivers/store/memory"
	uluredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/ululelimit"
)

// ctx is for calls without a deadline.
var ctx = context.Background()

// inMemory returns ulule's store in memory, without the goroutine that sweeps it.
func inMemory() limiter.Store {
	return ulumemory.NewStoreWithOptions(limiter.StoreOptions{Prefix: limiter.DefaultPrefix})
}

// inRedis returns ulule's store on a Redis server in this process, and what
// moves the clock by which its keys expire.
func inRedis(t *testing.T, start time.Time) (store limiter.Store, set func(time.Time)) {
	t.Helper()
	server := miniredis.RunT(t)
	server.SetTime(start)
	server.ClockTTL(true)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { client.Close() })
	store, err := uluredis.NewStore(client)
	if err != nil {
		t.Fatal(err)
	}
	return store, server.SetTime
}

func newLimiter(t *testing.T, store limiter.Store, opts ululelimit.Options) *ululelimit.Limiter {
	t.Helper()
	l, err := ululelimit.New(store, opts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func take(t *testing.T, l ratelimit.Limiter, subject string, plan *ratelimit.Plan, cost int64) *ratelimit.Decision {
	t.Helper()
	d, err := l.Take(ctx, subject, plan, cost)
	if err != nil {
		t.Fatal(err)
	}
	return &d
}

func plan(quotas ...ratelimit.Quota) *ratelimit.Plan {
	return ratelimit.MustPlan("test", ratelimit.Penalty{}, quotas...)
}
