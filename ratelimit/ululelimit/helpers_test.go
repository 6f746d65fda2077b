package ululelimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/ulule/limiter/v3"
	ulumemory "github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ululelimit"
)

var must = testcheck.NoError

// ctx is for calls without a deadline.
var ctx = context.Background()

// inMemory returns ulule's store in memory, without the goroutine that sweeps it.
func inMemory() limiter.Store {
	return ulumemory.NewStoreWithOptions(limiter.StoreOptions{Prefix: limiter.DefaultPrefix})
}

func newStore(t testing.TB, engine ratelimit.Limiter, opts ululelimit.StoreOptions) *ululelimit.Store {
	t.Helper()
	s := testcheck.Must(ululelimit.NewStore(engine, opts))
	return s
}

func newMemory(t testing.TB) *memory.Limiter {
	t.Helper()
	l := testcheck.Must(memory.New(memory.Options{}))
	return l
}

func plan(quotas ...ratelimit.Quota) *ratelimit.Plan {
	return ratelimit.MustPlan("test", ratelimit.Penalty{}, quotas...)
}

func newLimiter(t *testing.T, store limiter.Store, windows ...time.Duration) *ululelimit.Limiter {
	t.Helper()
	l := testcheck.Must(ululelimit.New(store, windows...))
	return l
}

func take(t *testing.T, l ratelimit.Limiter, plan *ratelimit.Plan, cost int64) *ratelimit.Decision {
	t.Helper()
	d := testcheck.Must(l.Take(ctx, "a", plan, cost))
	return &d
}
