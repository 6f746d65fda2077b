package failover_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// unreachable stands for an engine whose store cannot be reached.
type unreachable struct{}

func (unreachable) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, errors.New("connection refused")
}

func (unreachable) Adjust(context.Context, string, *ratelimit.Decision, int64, string) error {
	return errors.New("connection refused")
}

func Example() {
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerDay(2))
	embedded, err := memory.New(memory.Options{})
	if err != nil {
		panic(err)
	}
	limiter, err := failover.New(unreachable{}, failover.Options{Local: embedded, ConsecutiveFailures: 2})
	if err != nil {
		panic(err)
	}
	defer limiter.Close()

	for range 3 {
		d, err := limiter.Take(context.Background(), "owner:17", plan, 1)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%v, %d left; open %v\n", d.Outcome, d.Remaining(), limiter.Open())
	}
	// Output:
	// allowed, 1 left; open false
	// allowed, 0 left; open true
	// limited, 0 left; open true
}

// A service reports which engine decides, in a log, a metric or its readiness.
func ExampleOptions_onChange() {
	changed := make(chan error)
	limiter, err := failover.New(unreachable{}, failover.Options{
		ConsecutiveFailures: 1,
		OnChange:            func(failure error) { changed <- failure },
	})
	if err != nil {
		panic(err)
	}
	_, err = limiter.Take(context.Background(), "owner:17", ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerDay(2)), 1)
	fmt.Println(errors.Is(err, ratelimit.ErrUnavailable))
	fmt.Println("the primary fails:", <-changed)
	// Output:
	// true
	// the primary fails: connection refused
}
