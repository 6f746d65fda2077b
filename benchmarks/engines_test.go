package benchmarks

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/didip/tollbooth/v8"
	tollboothlimiter "github.com/didip/tollbooth/v8/limiter"
	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledstore "github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	ululestore "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// An engine decides one request against both quotas, and reports whether it was
// admitted.
type engine func(key string) bool

// minuteWindow is shorter in [BenchmarkFirst] alone, which waits for its end.
var minuteWindow = time.Minute

const (
	dayWindow = 24 * time.Hour

	// roomy is a limit that no benchmark uses up. All engines can express it.
	roomy = 1 << 30
)

// A maker makes an engine for so many requests a minute and a day.
type maker struct {
	peer string
	new  func(tb testing.TB, minute, day int) engine
}

// engines are those in memory.
var engines = []maker{
	{"gatehouse", newGatehouse},
	{"sethvargo", newSethvargo},
	{"xtime", newXTime},
	{"throttled", newThrottled},
	{"httprate", newHTTPRate},
	{"ulule", newUlule},
	{"tollbooth", newTollbooth},
	{"none", func(testing.TB, int, int) engine { return func(string) bool { return true } }},
}

// plan returns the plan for both quotas, with strikes and bans. The grace is so
// long that a client which is denied all the time stays limited and is not banned.
func plan(minute, day int) *ratelimit.Plan {
	penalty := ratelimit.DefaultPenalty()
	penalty.Grace = time.Hour
	return ratelimit.MustPlan("plan", penalty,
		ratelimit.Quota{Limit: int64(minute), Window: minuteWindow}, ratelimit.PerDay(int64(day)))
}

func newMemory(opts memory.Options) *memory.Limiter { return testcheck.Must(memory.New(opts)) }

func newGatehouse(tb testing.TB, minute, day int) engine {
	return takeFrom(newMemory(memory.Options{}), plan(minute, day))
}

func takeFrom(l *memory.Limiter, plan *ratelimit.Plan) engine {
	ctx := context.Background()
	return func(key string) bool {
		d, err := l.Take(ctx, key, plan, 1)
		return err == nil && d.Allowed()
	}
}

func newSethvargo(tb testing.TB, minute, day int) engine {
	return newSethvargoOf(tb, memorystore.Config{}, minute, day)
}

func newSethvargoOf(tb testing.TB, config memorystore.Config, minute, day int) engine {
	return both(sethvargoQuota(tb, config, minute, minuteWindow), sethvargoQuota(tb, config, day, dayWindow))
}

func sethvargoQuota(tb testing.TB, config memorystore.Config, limit int, window time.Duration) engine {
	ctx := context.Background()
	config.Tokens, config.Interval = uint64(limit), window
	store := testcheck.Must(memorystore.New(&config))
	tb.Cleanup(func() { store.Close(ctx) })
	return func(key string) bool {
		_, _, _, ok, err := store.Take(ctx, key)
		return ok && err == nil
	}
}

// both asks the second engine only about what the first admits.
func both(minute, day engine) engine {
	return func(key string) bool { return minute(key) && day(key) }
}

// newXTime is golang.org/x/time/rate as services use it: a limiter for each
// caller, in a map. Both limiters of a caller share one entry and one reading of
// the clock.
func newXTime(_ testing.TB, minute, day int) engine {
	type limiters struct{ minute, day *rate.Limiter }
	var callers sync.Map
	return func(key string) bool {
		v, ok := callers.Load(key)
		if !ok {
			v, _ = callers.LoadOrStore(key, &limiters{
				rate.NewLimiter(rate.Limit(float64(minute)/minuteWindow.Seconds()), minute),
				rate.NewLimiter(rate.Limit(float64(day)/dayWindow.Seconds()), day),
			})
		}
		l, now := v.(*limiters), time.Now()
		return l.minute.AllowN(now, 1) && l.day.AllowN(now, 1)
	}
}

func throttledQuota(limit int, window time.Duration) throttled.RateQuota {
	return throttled.RateQuota{MaxRate: throttled.PerDuration(limit, window), MaxBurst: limit - 1}
}

func newThrottledLimiter(store throttled.GCRAStoreCtx, limit int, window time.Duration) *throttled.GCRARateLimiterCtx {
	return testcheck.Must(throttled.NewGCRARateLimiterCtx(store, throttledQuota(limit, window)))
}

func newThrottled(tb testing.TB, minute, day int) engine { return newThrottledOf(0, minute, day) }

// newThrottledOf holds at most so many keys, and forgets the least recently
// used; 0: any number.
func newThrottledOf(keys, minute, day int) engine {
	return both(newThrottledQuota(keys, minute, minuteWindow), newThrottledQuota(keys, day, dayWindow))
}

func newThrottledQuota(keys, limit int, window time.Duration) engine {
	ctx := context.Background()
	l := newThrottledLimiter(testcheck.Must(throttledstore.NewCtx(keys)), limit, window)
	return func(key string) bool {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return !limited && err == nil
	}
}

// An httprateQuota does what OnLimit of httprate does, without the header fields.
type httprateQuota struct {
	mu      sync.Mutex
	limit   int
	window  time.Duration
	limiter *httprate.RateLimiter
	counter httprate.LimitCounter
}

func newHTTPRateQuota(limit int, window time.Duration) *httprateQuota {
	counter := httprate.NewLocalLimitCounter(window)
	return &httprateQuota{
		limit: limit, window: window, counter: counter,
		limiter: httprate.NewRateLimiter(limit, window, httprate.WithLimitCounter(counter)),
	}
}

func (q *httprateQuota) take(key string) bool {
	current := time.Now().UTC().Truncate(q.window)
	q.mu.Lock()
	defer q.mu.Unlock()
	_, used, err := q.limiter.Status(key)
	if err != nil || int(math.Round(used))+1 > q.limit {
		return false
	}
	return q.counter.IncrementBy(key, current, 1) == nil
}

func newHTTPRate(_ testing.TB, minute, day int) engine {
	m, d := newHTTPRateQuota(minute, minuteWindow), newHTTPRateQuota(day, dayWindow)
	return func(key string) bool { return m.take(key) && d.take(key) }
}

func newUlule(_ testing.TB, minute, day int) engine {
	return newUluleOf(limiter.DefaultCleanUpInterval, minute, minuteWindow, day, dayWindow)
}

// newUluleOf has a store for each quota, since two rates on one store share a
// counter.
func newUluleOf(cleanUp time.Duration, minute int, minuteWindow time.Duration, day int, dayWindow time.Duration) engine {
	ctx := context.Background()
	quota := func(limit int, window time.Duration) engine {
		store := ululestore.NewStoreWithOptions(limiter.StoreOptions{Prefix: limiter.DefaultPrefix, CleanUpInterval: cleanUp})
		l := limiter.New(store, limiter.Rate{Limit: int64(limit), Period: window})
		return func(key string) bool {
			c, err := l.Get(ctx, key)
			return !c.Reached && err == nil
		}
	}
	return both(quota(minute, minuteWindow), quota(day, dayWindow))
}

// newTollboothLimiter gives tollbooth, which knows rates a second, the rate and
// the burst of a quota.
func newTollboothLimiter(limit int, window time.Duration) *tollboothlimiter.Limiter {
	return tollbooth.NewLimiter(float64(limit)/window.Seconds(), nil).SetBurst(limit)
}

func newTollbooth(_ testing.TB, minute, day int) engine {
	m, d := newTollboothLimiter(minute, minuteWindow), newTollboothLimiter(day, dayWindow)
	return func(key string) bool { return !m.LimitReached(key) && !d.LimitReached(key) }
}
