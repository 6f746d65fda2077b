package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// at makes the examples' engines stand at one time, so that their output is
// always the same.
func at(t time.Time) memory.Options { return memory.Options{Now: func() time.Time { return t }} }

func Example() {
	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(),
		ratelimit.PerMinute(2), ratelimit.PerDay(1000))

	embedded, err := memory.New(at(time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC)))
	if err != nil {
		panic(err)
	}
	limited, err := limit.New(embedded, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "owner:17", Plan: free}, nil
	}, limit.Options{})
	if err != nil {
		panic(err)
	}

	server := httptest.NewServer(limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello")
	})))
	defer server.Close()

	for range 3 {
		response, err := http.Get(server.URL)
		if err != nil {
			panic(err)
		}
		response.Body.Close()
		fmt.Println(response.Status)
		for _, field := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"} {
			if value := response.Header.Get(field); value != "" {
				fmt.Printf("  %s: %s\n", field, value)
			}
		}
	}
	// Output:
	// 200 OK
	//   X-RateLimit-Limit: 2
	//   X-RateLimit-Remaining: 1
	//   X-RateLimit-Reset: 1772366460
	// 200 OK
	//   X-RateLimit-Limit: 2
	//   X-RateLimit-Remaining: 0
	//   X-RateLimit-Reset: 1772366460
	// 429 Too Many Requests
	//   X-RateLimit-Limit: 2
	//   X-RateLimit-Remaining: 0
	//   X-RateLimit-Reset: 1772366460
	//   Retry-After: 17
}

// The two requests in the documentation of Decision: the 60th of the minute is charged
// to both windows, the 61st to neither.
func ExampleDecision() {
	ctx, now := context.Background(), time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC)
	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(),
		ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	embedded, err := memory.New(at(now))
	if err != nil {
		panic(err)
	}
	used := engine.Uncounted(free, 0, now)
	if err := embedded.Adjust(ctx, "owner:17", &used, 59, ""); err != nil {
		panic(err)
	}
	used.States[0].Reset = 0 // the other 341 in earlier minutes
	if err := embedded.Adjust(ctx, "owner:17", &used, 341, ""); err != nil {
		panic(err)
	}
	for range 2 {
		d, err := embedded.Take(ctx, "owner:17", free, 1)
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Outcome)
		for i, q := range free.Quotas() {
			fmt.Println("  States:", d.States[i].Remaining, "of", q, "until", time.Unix(d.States[i].Reset, 0).UTC().Format("02 15:04:05"))
		}
		fmt.Println("  Applicable:", engine.Of(free).Quota(d.Applicable))
		fmt.Println("  RetryAfter:", d.RetryAfter)
		h := http.Header{}
		limit.XRateLimit.Set(h, &d)
		for _, name := range slices.Sorted(maps.Keys(h)) {
			fmt.Printf("  %s: %s\n", name, h.Get(name))
		}
	}
	// Output:
	// allowed
	//   States: 0 of 60/minute until 01 12:01:00
	//   States: 599 of 1000/day until 02 00:00:00
	//   Applicable: 60/minute
	//   RetryAfter: 0s
	//   X-Ratelimit-Limit: 60
	//   X-Ratelimit-Remaining: 0
	//   X-Ratelimit-Reset: 1772366460
	// limited
	//   States: 0 of 60/minute until 01 12:01:00
	//   States: 599 of 1000/day until 02 00:00:00
	//   Applicable: 60/minute
	//   RetryAfter: 17s
	//   Retry-After: 17
	//   X-Ratelimit-Limit: 60
	//   X-Ratelimit-Remaining: 0
	//   X-Ratelimit-Reset: 1772366460
}

// A limiter counts anything, not only HTTP requests.
func ExampleLimiter() {
	plan := ratelimit.MustPlan("exports", ratelimit.Penalty{}, ratelimit.PerHour(100))
	embedded, err := memory.New(at(time.Date(2026, time.March, 1, 12, 20, 0, 0, time.UTC)))
	if err != nil {
		panic(err)
	}
	for _, rows := range []int64{70, 40, 30} {
		d, err := embedded.Take(context.Background(), "team:ops", plan, rows)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%d rows: %v, %d left, retry after %v\n", rows, d.Outcome, d.Remaining(), d.RetryAfter)
	}
	// Output:
	// 70 rows: allowed, 30 left, retry after 0s
	// 40 rows: limited, 30 left, retry after 40m0s
	// 30 rows: allowed, 0 left, retry after 0s
}

func ExampleQuota_UnmarshalText() {
	for _, text := range []string{"60/minute", "1_000_000/day", "5/2s", "5/fortnight"} {
		var quota ratelimit.Quota
		if err := quota.UnmarshalText([]byte(text)); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(quota.Limit, "in", quota.Window)
	}
	// Output:
	// 60 in 1m0s
	// 1000000 in 24h0m0s
	// 5 in 2s
	// ratelimit: quota "5/fortnight": the window must be second, minute, hour, day, month, or a duration such as 30s or 168h
}

// A job waits for its turn. It does not start waiting if the quota will not have room
// before the deadline.
func ExampleWaiter() {
	plan := ratelimit.MustPlan("exports", ratelimit.Penalty{}, ratelimit.PerMinute(2))
	embedded, err := memory.New(at(time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC)))
	if err != nil {
		panic(err)
	}
	waiter := ratelimit.NewWaiter(embedded)

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for range 3 {
		if d, err := waiter.Wait(ctx, "job:export", plan, 1); err != nil {
			fmt.Println("retry after", d.RetryAfter.Round(time.Second), errors.Is(err, context.DeadlineExceeded))
		} else {
			fmt.Println(d.Outcome)
		}
	}
	// Output:
	// allowed
	// allowed
	// retry after 17s true
}
