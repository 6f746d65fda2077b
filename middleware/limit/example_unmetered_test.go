package limit_test

import (
	"fmt"
	"net/http"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Plans without quotas are for a customer that has not paid and for the service's own
// monitoring. A customer without a plan is not served by accident: identify says so.
func Example_suspendedPlan() {
	plans := map[string]*ratelimit.Plan{
		"ann":     ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60)),
		"bob":     ratelimit.SuspendedPlan("unpaid"),
		"monitor": ratelimit.UnlimitedPlan("internal"),
	}
	unknown := apierror.New(http.StatusForbidden, "unknown_user", "You have no account here.")
	engine, err := memory.New(noon)
	if err != nil {
		panic(err)
	}
	limited, err := limit.New(engine, func(r *http.Request) (ratelimit.Caller, error) {
		user := r.URL.Path[1:]
		plan := plans[user]
		if plan == nil {
			return ratelimit.Caller{}, unknown
		}
		return ratelimit.Caller{Subject: "user:" + user, Plan: plan}, nil
	}, limit.Options{Errors: quiet})
	if err != nil {
		panic(err)
	}
	api := limited(http.HandlerFunc(hello))
	for _, user := range []string{"ann", "bob", "monitor", "eve"} {
		show(api, "/"+user)
	}
	fmt.Println(plans["bob"])
	// Output:
	// /ann: 200, remaining "59"
	// /bob: 403, remaining "0"
	// /monitor: 200, remaining ""
	// /eve: 403, remaining ""
	// unpaid suspended
}
