//go:build unix

package ululelimit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"
	uluredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

// gaps are what the documentation of Limiter says that a ulule store cannot do.
// Usage outlives a change of the limit, but not one of the window; see
// [TestUsageOutlivesTheLimit].
var gaps = enginetest.Gaps{OneQuota: true, InOrder: true, RollingWindows: true, ChargesDenials: true, UsagePerPlan: true, NoCalendars: true, NoSmooth: true, NoPenalties: true}

func TestConformance(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, _ time.Time) enginetest.Engine {
		return enginetest.Engine{Limiter: newEngine(t, inMemory())}
	}, gaps)
}

func TestConformanceOfServer(t *testing.T) {
	client := clientOf(t, redistest.Start(t))
	enginetest.Run(t, func(t *testing.T, _ time.Time) enginetest.Engine {
		return enginetest.Engine{Limiter: newEngine(t, inRedis(t, client))}
	}, gaps)
}

// inRedis returns ulule's store on an empty server.
func inRedis(t *testing.T, client *redis.Client) limiter.Store {
	t.Helper()
	must(t, client.FlushAll(ctx).Err())
	store := testcheck.Must(uluredis.NewStore(client))
	return store
}

func clientOf(t *testing.T, s *redistest.Server) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, ReadTimeout: time.Minute})
	t.Cleanup(func() { c.Close() })
	return c
}

// newEngine returns an engine for the suite, which counts in the longest window
// where no clock can be set.
func newEngine(t *testing.T, store limiter.Store) ratelimit.Limiter {
	t.Helper()
	return newLimiter(t, store, time.Minute, time.Hour, 24*time.Hour, fixedwindow.MaxLength)
}

// stores runs a test with each of ulule's own stores.
func stores(t *testing.T, test func(t *testing.T, store limiter.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, inMemory()) })
	t.Run("redis", func(t *testing.T) { test(t, inRedis(t, clientOf(t, redistest.Start(t)))) })
}

func TestWindowsAreApart(t *testing.T) {
	stores(t, func(t *testing.T, store limiter.Store) {
		l := newLimiter(t, store)
		minute, day := plan(ratelimit.PerMinute(2)), plan(ratelimit.PerDay(100))
		for i := range int64(2) {
			if got := take(t, l, minute, 1).Remaining(); got != 1-i {
				t.Errorf("minute: %d remaining, want %d", got, 1-i)
			}
			d := take(t, l, day, 1)
			if got := d.Remaining(); got != 99-i {
				t.Errorf("day: %d remaining, want %d", got, 99-i)
			}
			if left := time.Unix(d.Reset(), 0).Sub(time.Unix(0, d.Time)); left < 23*time.Hour {
				t.Errorf("the day ends in %v", left)
			}
		}
	})
}

func TestUsageOutlivesTheLimit(t *testing.T) {
	stores(t, func(t *testing.T, store limiter.Store) {
		l := newLimiter(t, store)
		small, large := plan(ratelimit.PerHour(5)), plan(ratelimit.PerHour(50))
		take(t, l, small, 4)
		if got := take(t, l, large, 1).Remaining(); got != 45 {
			t.Errorf("4 of 5 were used, then 1 of 50: %d remaining, want 45", got)
		}
		if d := take(t, l, small, 1); d.Allowed() {
			t.Error("after 5 requests the limit of 5 admitted another")
		}
	})
}

func TestReset(t *testing.T) {
	stores(t, func(t *testing.T, store limiter.Store) {
		windows := []time.Duration{90 * time.Second, time.Hour}
		l := newLimiter(t, store, windows...)
		for _, w := range windows {
			take(t, l, plan(ratelimit.Quota{Limit: 1, Window: w}), 1)
		}
		must(t, l.Reset(ctx, "a"))
		for _, w := range windows {
			if d := take(t, l, plan(ratelimit.Quota{Limit: 1, Window: w}), 1); !d.Allowed() {
				t.Errorf("the window of %v was not reset", w)
			}
		}
	})
}

// The package documentation says so: with ContextTimeoutEnabled a call returns at the
// deadline of its context, whatever the timeouts of the client are.
func TestReturnsAtTheDeadline(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr, ContextTimeoutEnabled: true, MaxRetries: -1, ReadTimeout: time.Hour,
	})
	defer client.Close()
	store, err := uluredis.NewStore(client)
	must(t, err)
	l := newLimiter(t, store)
	server.Stop()
	defer server.Cont()
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := l.Take(short, "a", plan(ratelimit.PerMinute(1)), 1); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("Take from a server that does not answer: got error %v, want one that wraps ErrUnavailable", err)
	}
}
