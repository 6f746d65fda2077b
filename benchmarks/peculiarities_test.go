package benchmarks

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-chi/httprate"
	"github.com/go-redis/redis_rate/v10"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/ulule/limiter/v3"
	ululestore "github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

// Two limiters on one store share a counter, which counts each request twice and
// ends with the shorter window.
func TestUluleLimitersOnOneStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ululestore.NewStoreWithOptions(limiter.StoreOptions{Prefix: limiter.DefaultPrefix})
		minute := limiter.New(store, limiter.Rate{Limit: 60, Period: minuteWindow})
		day := limiter.New(store, limiter.Rate{Limit: 1000, Period: dayWindow})
		var left []int64
		for range 2 {
			for range 10 {
				minute.Get(t.Context(), "key")
				c, _ := day.Get(t.Context(), "key")
				left = append(left, c.Remaining)
			}
			time.Sleep(minuteWindow + time.Nanosecond)
		}
		if got, want := []int64{left[0], left[9], left[10]}, []int64{998, 980, 998}; !cmp.Equal(got, want) {
			t.Errorf("left of 1000 a day after requests 1, 10 and 11: %v, want %v", got, want)
		}
	})
}

// A request whose clock was read before a window ended, and which is counted
// after it did, forgets everybody's counts.
func TestHTTPRateLateRequest(t *testing.T) {
	before := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	after := before.Add(minuteWindow)
	counter := httprate.NewLocalLimitCounter(minuteWindow)
	for range 7 {
		counter.Increment("busy", after)
	}
	used, _, _ := counter.Get("busy", after, before)
	counter.Increment("late", before)
	counter.Increment("other", after)
	left, _, _ := counter.Get("busy", after, before)
	if used != 7 || left != 0 {
		t.Errorf("used before and after the late request: %d and %d, want 7 and 0", used, left)
	}
}

// As the others, it charges the day for what the minute refuses, and sets the
// fields twice: the tenth request of ten, of which three were admitted, finds a
// day of eight used up.
func TestSethvargoTwoQuotas(t *testing.T) {
	v := guard(t, "sethvargo", limited{8, dayWindow}, limited{3, minuteWindow})
	first := v.get().Header
	admitted := 1 + v.admitted(8)
	tenth := v.get().Header
	if l, r := first.Get("X-RateLimit-Limit"), first.Get("X-RateLimit-Remaining"); l != "3" || r != "2" {
		t.Errorf("the first response says that %s of %s are left, want 2 of 3", r, l)
	}
	if l, r := tenth.Get("X-RateLimit-Limit"), tenth.Get("X-RateLimit-Remaining"); admitted != 3 || l != "8" || r != "0" {
		t.Errorf("after %d were admitted the tenth response says that %s of %s are left, want 0 of 8 after 3", admitted, r, l)
	}
}

// RFC 9110 section 5.6.7 has dates end in GMT. net/http does not read these.
func TestSethvargoDates(t *testing.T) {
	v := guard(t, "sethvargo", limited{1, dayWindow})
	v.get()
	h := v.get().Header
	for _, name := range []string{"X-RateLimit-Reset", "Retry-After"} {
		at, err := time.Parse(time.RFC1123, h.Get(name))
		if _, httpErr := http.ParseTime(h.Get(name)); err != nil || httpErr == nil || at.Location() != time.UTC {
			t.Errorf("%s: %q is a date that net/http reads, or none; want one that ends in UTC", name, h.Get(name))
		}
	}
}

// With each interval that ends, a bucket gets as many tokens as one token lasts
// nanoseconds, at most all. If these are fewer, it is not full again: 1,000,000 a
// minute become 60,000, and 100,000 in 10 ms become 100.
func TestSethvargoRefill(t *testing.T) {
	ctx := context.Background()
	const limit = 100_000
	store := testcheck.Must(memorystore.New(&memorystore.Config{Tokens: limit, Interval: 10 * time.Millisecond}))
	defer store.Close(ctx)
	_, left, reset, _, _ := store.Take(ctx, "key")
	if left != limit-1 {
		t.Errorf("%d tokens are left of a new bucket, want %d", left, limit-1)
	}
	for next := reset; next == reset; {
		_, left, next, _, _ = store.Take(ctx, "key")
	}
	if left > limit/2 {
		t.Errorf("%d tokens are left in the next interval, want next to none", left)
	}
}

// The address is always a part of the key, and who sends no key is not limited.
// Limit and Reset are a second's.
func TestTollboothKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := guard(t, "tollbooth", limited{2, dayWindow})
		total := 0
		for i := range 3 {
			v.address = fmt.Sprintf("192.0.2.%d:1234", i+1)
			total += v.admitted(10)
		}
		v.key = ""
		if none := v.admitted(10); total != 6 || none != 10 {
			t.Errorf("admitted with one key from three addresses: %d, and without a key: %d of 10, want 6 and 10", total, none)
		}
		h := guard(t, "tollbooth", limited{100_000, dayWindow}).get().Header
		if limit, reset := h.Get("RateLimit-Limit"), h.Get("RateLimit-Reset"); limit != "1" || reset != "1" {
			t.Errorf("of 100,000 a day the fields say Limit %s, Reset %s, want 1 and 1", limit, reset)
		}
	})
}

func newMiniRate(t *testing.T) *redis_rate.Limiter {
	server := miniredis.RunT(t)
	server.SetTime(time.Date(2026, 1, 1, 12, 0, 0, 123_456_000, time.UTC))
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { client.Close() })
	return redis_rate.NewLimiter(client)
}

// The limit is not a part of the key: a request under 10 a day is 2.4 hours of
// 1000 a minute.
func TestRedisRateTwoLimitsOnOneKey(t *testing.T) {
	l, ctx := newMiniRate(t), context.Background()
	testcheck.Must(l.Allow(ctx, "key", redis_rate.Limit{Rate: 10, Burst: 10, Period: dayWindow}))
	r := testcheck.Must(l.Allow(ctx, "key", redis_rate.PerMinute(1000)))
	if r.Allowed != 0 || r.RetryAfter.Round(time.Second) != 8580*time.Second {
		t.Errorf("allowed of the first request under 1000 a minute: %d, again after %v, want 0, after 2h23m0s", r.Allowed, r.RetryAfter)
	}
}
