package engine_test

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// forgetful is an engine that checks calls as every engine does, and counts nothing.
type forgetful struct{}

func (forgetful) Take(_ context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if d, err := engine.Decide(subject, plan, cost); err != nil || d.Outcome != 0 {
		return d, err // the call is wrong, or the plan is suspended or unlimited
	}
	now := time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC)
	return engine.Uncounted(plan, cost, now), nil
}

func Example() {
	var limiter ratelimit.Limiter = forgetful{}
	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))
	for _, plan := range []*ratelimit.Plan{free, ratelimit.SuspendedPlan("unpaid"), nil} {
		d, err := limiter.Take(context.Background(), "user:ann", plan, 1)
		fmt.Println(d.Outcome, d.Remaining(), err)
	}
	// Output:
	// allowed 60 <nil>
	// suspended 0 <nil>
	// undecided 0 ratelimit: invalid call: no plan: it is nil, as for a name that a map of plans does not have
}
