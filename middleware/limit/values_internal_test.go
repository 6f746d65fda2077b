package limit

import (
	"errors"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit"
)

func TestValuesReturnErrors(t *testing.T) {
	plan := mustPlan("limit.ByHeader", []ratelimit.Quota{PerMinute(2)})
	for _, subject := range []string{"network:192.0.2.1/32", "header:a\nnetwork:192.0.2.1/32"} {
		if _, err := newValues(plan).Take(t.Context(), subject, plan, 3); !errors.Is(err, ratelimit.ErrCostExceedsLimit) {
			t.Errorf("Take of %q for 3 of 2 units: %v, want ErrCostExceedsLimit", subject, err)
		}
	}
}
