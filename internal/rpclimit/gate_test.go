package rpclimit

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func newGate(t *testing.T, opts Options) *Gate {
	t.Helper()
	at := time.Date(2026, 11, 22, 12, 0, 43, 0, time.UTC)
	engine, err := memory.New(memory.Options{Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	g, err := New("test", engine, true, opts, func(error) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The error names the adapter, and comes before the first call.
func TestNewNeedsALimiter(t *testing.T) {
	for _, l := range []ratelimit.Limiter{nil, (*memory.Limiter)(nil)} {
		if _, err := New("test", l, true, Options{}, nil); err == nil || err.Error() != "test: the limiter must not be nil" {
			t.Errorf("New of a nil %T: %v", l, err)
		}
	}
}

// Of several quotas those are violated that have too little left. The minute has just
// enough.
func TestViolations(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(2), ratelimit.PerHour(1), ratelimit.PerDay(1))
	g, c := newGate(t, Options{}), ratelimit.Caller{Subject: "ann", Plan: plan}
	g.Open(t.Context(), "m", c, nil)
	want := []Violation{{"hour", "1/hour", 1}, {"day", "1/day", 1}}
	if diff := cmp.Diff(want, g.Open(t.Context(), "m", c, nil).Denial.Violations); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// The text names the first quota that the cost is over, not one that it is equal to. A
// smooth quota bounds a cost by its burst.
func TestTooExpensiveNamesTheQuota(t *testing.T) {
	g := newGate(t, Options{Cost: func(context.Context, string) int64 { return 60 }})
	for most, quota := range map[string]ratelimit.Quota{
		"50/day":     ratelimit.PerDay(50),
		"10 at once": ratelimit.PerDay(600).Smooth(10),
	} {
		plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerHour(600).Smooth(60), quota)
		call := g.Open(t.Context(), "m", ratelimit.Caller{Subject: "ann", Plan: plan}, nil)
		if want := "This call costs 60 units, but your plan allows at most " + most + "."; call.Denial.Message != want {
			t.Errorf("text %q, want %q", call.Denial.Message, want)
		}
	}
}

// A further charge has the cost that identify names, and that of the call if it names none.
func TestCostOfFurtherCharges(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(100))
	g := newGate(t, Options{Cost: func(context.Context, string) int64 { return 5 }})
	call := g.Open(t.Context(), "m", ratelimit.Caller{Subject: "ann", Plan: plan, Also: []ratelimit.Charge{
		{Subject: "team", Plan: plan}, {Subject: "bytes", Plan: plan, Cost: 70},
	}}, nil)
	var left []int64
	for i := range call.made {
		left = append(left, call.made[i].Remaining())
	}
	if diff := cmp.Diff([]int64{95, 95, 30}, left); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// A wrongEngine returns a decision that no engine may return.
type wrongEngine struct{ d ratelimit.Decision }

func (e wrongEngine) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return e.d, nil
}

// A denial without a plan refuses the call, and does not end the process.
func TestDenialsWithoutAPlan(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(3))
	for _, outcome := range []ratelimit.Outcome{0, ratelimit.Limited, ratelimit.Banned, ratelimit.Suspended, ratelimit.Spared, 77} {
		g, err := New("test", wrongEngine{ratelimit.Decision{Outcome: outcome}}, true, Options{}, func(error) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		if call := g.Open(t.Context(), "m", ratelimit.Caller{Subject: "ann", Plan: plan}, nil); call.Denial == nil {
			t.Errorf("%v without a plan: the call is served", outcome)
		}
	}
}

// In shadow mode no call is a strike.
func TestShadowIsNoPenalty(t *testing.T) {
	ban := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 2, Max: 2 * time.Hour, Forgive: time.Hour}
	plan := ratelimit.MustPlan("p", ban, ratelimit.PerMinute(1))
	g := newGate(t, Options{Shadow: true, Observe: func(_ context.Context, _ string, _ ratelimit.Caller, d ratelimit.Decision, _ error) {
		if d.Struck || d.Outcome == ratelimit.Banned {
			t.Errorf("decided %v, a strike: %v", d.Outcome, d.Struck)
		}
	}})
	for range 5 {
		g.Open(t.Context(), "m", ratelimit.Caller{Subject: "ann", Plan: plan}, nil)
	}
}

// Where calls differ in cost, a reservation counts units too.
func TestReservationIsWeighted(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	g := newGate(t, Options{Context: true, Cost: func(context.Context, string) int64 { return 1 }})
	call := g.Open(t.Context(), "m", ratelimit.Caller{Subject: "ann", Plan: plan}, nil)
	if d := ratelimit.FromContext(call.Context).Decision(); !d.Weighted {
		t.Errorf("decision %+v", d)
	}
}

// strange returns an outcome that no engine may return.
type strange struct{}

func (strange) Take(_ context.Context, _ string, plan *ratelimit.Plan, _ int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{Outcome: ratelimit.Spared, Plan: plan}, nil
}

// The answer is not left to Options.Deny, which is for three outcomes.
func TestStrangeOutcomeIsRefused(t *testing.T) {
	deny := func(_ context.Context, _ string, _ ratelimit.Caller, d ratelimit.Decision) error {
		t.Errorf("Deny gets the outcome %v", d.Outcome)
		return nil
	}
	g, err := New("test", strange{}, true, Options{Deny: deny}, func(error) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	call := g.Open(t.Context(), "m", ratelimit.Caller{Subject: "ann", Plan: plan}, nil)
	if call.Denial == nil || call.Denial.Code != Internal {
		t.Errorf("denial %+v, want internal", call.Denial)
	}
}
