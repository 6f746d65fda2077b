package memory_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func Example() {
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	limiter, err := memory.New(memory.Options{
		Now: func() time.Time { return time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC) },
	})
	if err != nil {
		panic(err)
	}
	d, err := limiter.Take(context.Background(), "owner:17", plan, 1)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%v: %d of %d left until %v\n", d.Outcome, d.Remaining(), d.Limit(), time.Unix(d.Reset(), 0).UTC().Format(time.TimeOnly))
	// Output: allowed: 59 of 60 left until 12:01:00
}

// The worked example of the package documentation.
func ExampleLimiter_Take() {
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	ctx := context.Background()
	now := time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC)
	limiter, err := memory.New(memory.Options{Now: func() time.Time { return now }})
	if err != nil {
		panic(err)
	}
	for i, used := range []int64{59, 400} {
		d := engine.Uncounted(plan, 0, now)
		d.States[1-i].Reset = 0 // the other window
		if err := limiter.Adjust(ctx, "owner:17", &d, used, ""); err != nil {
			panic(err)
		}
	}
	for range 2 {
		d, err := limiter.Take(ctx, "owner:17", plan, 1)
		if err != nil {
			panic(err)
		}
		minute, day := d.States[0], d.States[1]
		fmt.Printf("%d of 60, %d of 1000: %v, %d left until %v, retry after %v\n", 60-minute.Remaining, 1000-day.Remaining,
			d.Outcome, d.Remaining(), time.Unix(d.Reset(), 0).UTC().Format(time.TimeOnly), d.RetryAfter)
	}
	// Output:
	// 60 of 60, 401 of 1000: allowed, 0 left until 12:01:00, retry after 0s
	// 60 of 60, 401 of 1000: limited, 0 left until 12:01:00, retry after 17s
}

// A service of one process keeps usage over a restart.
func ExampleOpen() {
	folder, err := os.MkdirTemp("", "pets")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMonth(1000))
	for range 3 { // processes, one after the other
		engine, _, closeFile, err := memory.Open(filepath.Join(folder, "usage.json"), memory.Options{
			Now: func() time.Time { return time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC) },
		})
		if err != nil {
			panic(err)
		}
		d, err := engine.Take(context.Background(), "owner:17", plan, 1)
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Remaining(), "of", d.Limit(), "left")
		if err := closeFile(); err != nil { // it also saves
			panic(err)
		}
	}
	// Output:
	// 999 of 1000 left
	// 998 of 1000 left
	// 997 of 1000 left
}

// What an engine knows outlives its process if it is saved and loaded again, here by a
// database.
func ExampleLimiter_Save() {
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerDay(1000))
	ctx := context.Background()
	now := func() time.Time { return time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC) }

	before, err := memory.New(memory.Options{Now: now})
	if err != nil {
		panic(err)
	}
	if _, err := before.Take(ctx, "owner:17", plan, 400); err != nil {
		panic(err)
	}
	stored := map[uint64]memory.Record{} // a table in a database
	err = before.Save(func(records []memory.Record) error {
		for _, r := range records {
			if len(r.Data) == 0 { // forgotten
				delete(stored, r.Key)
				continue
			}
			stored[r.Key] = r
		}
		return nil
	})
	if err != nil {
		panic(err)
	}

	// The secret is stored as well: an engine with another one finds nothing.
	after, err := memory.New(memory.Options{Now: now, Secret: before.Secret()})
	if err != nil {
		panic(err)
	}
	for _, r := range stored {
		if err := after.Load([]memory.Record{r}); err != nil {
			panic(err)
		}
	}
	d, err := after.Peek(ctx, "owner:17", plan)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Remaining(), "of", d.Limit(), "left")
	// Output: 600 of 1000 left
}
