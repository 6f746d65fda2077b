package redisrate_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
	"github.com/animalstore/gatehouse/ratelimit/redisrate"
)

var must = testcheck.NoError

// start is within a second, at a fraction that no binary number holds.
var start = time.Date(2026, time.March, 1, 12, 0, 30, 123_457_000, time.UTC)

// A fixture is an engine on a Redis server in this process, whose clock stands
// until it is moved.
type fixture struct {
	*testing.T
	*redisrate.Limiter
	server *miniredis.Miniredis
	client *redis.Client
	clock  *ratelimittest.Clock
}

func newFixture(t *testing.T, opts redisrate.Options) *fixture {
	t.Helper()
	f := &fixture{T: t, server: miniredis.RunT(t), clock: ratelimittest.NewClock(start)}
	f.set(start)
	f.server.ClockTTL(true)
	f.client = redis.NewClient(&redis.Options{Addr: f.server.Addr(), ReadTimeout: time.Minute, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { f.client.Close() })
	var err error
	if f.Limiter, err = redisrate.New(redis_rate.NewLimiter(f.client), opts); err != nil {
		t.Fatal(err)
	}
	f.SetClock(f.clock.Now)
	return f
}

func (f *fixture) set(now time.Time) {
	f.clock.Set(now)
	f.server.SetTime(now)
}

func (f *fixture) advance(d time.Duration) { f.set(f.clock.Now().Add(d)) }

func (f *fixture) take(subject string, plan *ratelimit.Plan, cost int64) *ratelimit.Decision {
	f.Helper()
	d := testcheck.Must(f.Take(context.Background(), subject, plan, cost))
	return &d
}

func (f *fixture) peek(subject string, plan *ratelimit.Plan) *ratelimit.Decision {
	f.Helper()
	d := testcheck.Must(f.Peek(context.Background(), subject, plan))
	return &d
}

func plan(quotas ...ratelimit.Quota) *ratelimit.Plan {
	return ratelimit.MustPlan("test", ratelimit.Penalty{}, quotas...)
}
