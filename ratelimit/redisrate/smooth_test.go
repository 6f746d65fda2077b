package redisrate_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/redisrate"
)

// The reason why smooth quotas are refused: in redis_rate a subject that uses all of
// 1000/second gains 13 nanoseconds with each request. If this test fails because it gains
// nothing, redis_rate can count smooth quotas.
func TestRedisRateDriftsFromSmoothQuotas(t *testing.T) {
	const requests, burst = 500, 10
	f := newFixture(t, redisrate.Options{})
	model, p := enginetest.NewModel(f.clock.Now), plan(ratelimit.PerSecond(1000).Smooth(burst))
	rate, limit := redis_rate.NewLimiter(f.client), redis_rate.Limit{Rate: 1000, Burst: burst, Period: time.Second}
	var exact, got time.Duration // until the bucket is full
	use := func(units int64) {
		t.Helper()
		d, err := model.Take(context.Background(), "a", p, units)
		if err != nil || !d.Allowed() {
			t.Fatalf("the model: %v, %v, want allowed", d.Outcome, err)
		}
		result, err := rate.AllowN(context.Background(), "a", limit, int(units))
		if err != nil || result.Allowed == 0 {
			t.Fatalf("redis_rate: %+v, %v, want allowed", result, err)
		}
		exact = time.Duration(float64(d.States[0].Reset*1e9-d.Time) - float64(d.Receipt.Rounded[0])/4.294967296)
		got = result.ResetAfter
	}
	use(burst / 2) // so that the bucket is never full
	for range requests {
		f.advance(time.Millisecond)
		use(1)
	}
	if gained := exact - got; gained < requests*12 || gained > requests*14 {
		t.Errorf("after %d requests the bucket is full %v too early, want about %v", requests, gained, time.Duration(requests*13))
	}
}
