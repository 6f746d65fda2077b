package telemetry_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/middleware/telemetry"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A request that is charged to several subjects is measured once, by the decision that
// matters most.
func TestTakeAllIsMeasured(t *testing.T) {
	c := collect(t, telemetry.Options{})
	l, err := memory.New(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	once := ratelimit.MustPlan("once", ratelimit.Penalty{}, ratelimit.Quota{Limit: 1, Window: fixedwindow.MaxLength})
	charges := []ratelimit.Charge{{Subject: "owner:ann", Plan: free, Cost: 1}, {Subject: "everybody", Plan: once, Cost: 1}}
	decisions := make([]ratelimit.Decision, 2)
	for range 3 {
		if err := c.TakeAll(t.Context(), l, charges, decisions); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.TakeAll(t.Context(), l, charges, nil); err == nil {
		t.Error("no room for decisions: got no error")
	}
	var none *telemetry.Telemetry
	if err := none.TakeAll(t.Context(), l, charges, decisions); err != nil || decisions[1].Outcome != ratelimit.Limited {
		t.Errorf("without telemetry: got %v and error %v, want limited", decisions[1].Outcome, err)
	}
	want := map[string]int64{"allowed": 1, "limited": 2, "undecided": 1}
	if diff := cmp.Diff(want, c.series(t, "gatehouse.engine.duration")); diff != "" {
		t.Errorf("measurements by result (-want +got):\n%s", diff)
	}
}
