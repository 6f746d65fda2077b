package engine_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/plan"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// One of several charges may be under a plan without quotas: an unlimited one changes
// nothing, and a suspended one refuses the request without a charge or a strike.
func TestTakeAllWithPlansWithoutQuotas(t *testing.T) {
	tester, debtor := ratelimit.UnlimitedPlan("tester"), ratelimit.SuspendedPlan("debtor")
	spent := ratelimit.MustPlan("user", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1))
	const allowed, limited, spared, suspended = ratelimit.Allowed, ratelimit.Limited, ratelimit.Spared, ratelimit.Suspended
	for _, tt := range []struct {
		name     string
		charges  []ratelimit.Charge
		want     []outcome
		deciding int
	}{
		{"unlimited alone", []ratelimit.Charge{{Subject: "a", Plan: tester, Cost: 7}}, []outcome{{allowed, 0, "tester"}}, 0},
		{"unlimited first", []ratelimit.Charge{{Subject: "a", Plan: tester, Cost: 1}, {Subject: "company:7", Plan: company, Cost: 1}},
			[]outcome{{allowed, 0, "tester"}, {allowed, 2, "company"}}, 1},
		{"unlimited between, more than its share", []ratelimit.Charge{{Subject: "company:7", Plan: company, Cost: 2}, {Subject: "a", Plan: tester, Cost: 1 << 60}, {Subject: "everyone", Plan: everyone, Cost: 4}},
			[]outcome{{allowed, 1, "company"}, {allowed, 0, "tester"}, {allowed, 0, "everyone"}}, 2},
		{"unlimited, another limited", []ratelimit.Charge{{Subject: "a", Plan: tester, Cost: 1}, {Subject: "spent", Plan: spent, Cost: 1}, {Subject: "company:7", Plan: company, Cost: 1}},
			[]outcome{{spared, 0, "tester"}, {limited, 0, "user"}, {spared, 3, "company"}}, 1},
		{"suspended alone", []ratelimit.Charge{{Subject: "a", Plan: debtor, Cost: 7}}, []outcome{{suspended, 0, "debtor"}}, 0},
		{"suspended last", []ratelimit.Charge{{Subject: "company:7", Plan: company, Cost: 1}, {Subject: "a", Plan: debtor, Cost: 1}},
			[]outcome{{}, {suspended, 0, "debtor"}}, 1},
		{"suspended, another limited", []ratelimit.Charge{{Subject: "spent", Plan: spent, Cost: 1}, {Subject: "a", Plan: debtor, Cost: 1}, {Subject: "b", Plan: tester, Cost: 1}},
			[]outcome{{}, {suspended, 0, "debtor"}, {spared, 0, "tester"}}, 1},
		{"the same subject under a plan with quotas", []ratelimit.Charge{{Subject: "company:7", Plan: company, Cost: 1}, {Subject: "company:7", Plan: tester, Cost: 1}},
			[]outcome{{allowed, 2, "company"}, {allowed, 0, "tester"}}, 0},
	} {
		model := newModel()
		t.Run(tt.name, func(t *testing.T) {
			if _, err := model.Take(t.Context(), "spent", spent, 1); err != nil {
				t.Fatal(err)
			}
			decisions := make([]ratelimit.Decision, len(tt.charges))
			if err := ratelimit.TakeAll(t.Context(), model, tt.charges, decisions); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, outcomes(decisions)); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if got := engine.Deciding(decisions); got != tt.deciding {
				t.Errorf("the deciding one is %d, want %d", got, tt.deciding)
			}
			if d := decisions[tt.deciding]; d.Outcome == suspended && d.RetryAfter != 0 {
				t.Errorf("the wait of a suspended caller is %v, want none", d.RetryAfter)
			}
			d, err := model.Peek(t.Context(), "company:7", company)
			charged := tt.want[tt.deciding].Outcome == allowed
			if err != nil || !charged && d.Remaining() != 3 {
				t.Errorf("after a denial the company has %d left (%v), want all 3", d.Remaining(), err)
			}
			if d, err = model.Peek(t.Context(), "spent", spent); err != nil || d.StrikesLeft != spent.Penalty().Strikes {
				t.Errorf("%d strikes are left (%v), want all, because the plan is suspended or it was in the grace", d.StrikesLeft, err)
			}
		})
	}
}

// Wrong charges stay wrong beside one under a plan without quotas.
func TestTakeAllRefusesWrongCallsWithPlansWithoutQuotas(t *testing.T) {
	tester := ratelimit.UnlimitedPlan("tester")
	for name, charges := range map[string][]ratelimit.Charge{
		"no plan":         {{Subject: "a", Plan: tester, Cost: 1}, {Subject: "b", Plan: nil, Cost: 1}},
		"no subject":      {{Subject: "a", Plan: tester, Cost: 1}, {Subject: "", Plan: company, Cost: 1}},
		"no cost":         {{Subject: "a", Plan: tester, Cost: 0}, {Subject: "b", Plan: company, Cost: 1}},
		"a subject twice": {{Subject: "a", Plan: tester, Cost: 1}, {Subject: "b", Plan: company, Cost: 1}, {Subject: "b", Plan: user, Cost: 1}},
		"too many":        make([]ratelimit.Charge, plan.MaxCharges+1),
	} {
		if name == "too many" {
			charges[0] = ratelimit.Charge{Subject: "a", Plan: tester, Cost: 1}
		}
		decisions := make([]ratelimit.Decision, len(charges))
		if err := ratelimit.TakeAll(t.Context(), newModel(), charges, decisions); !errors.Is(err, ratelimit.ErrInvalid) {
			t.Errorf("%s: got error %v, want one that wraps ErrInvalid", name, err)
		}
	}
	one := []ratelimit.Charge{{Subject: "a", Plan: tester, Cost: 1}}
	if err := newModel().TakeAll(t.Context(), one, make([]ratelimit.Decision, 1)); !errors.Is(err, ratelimit.ErrInvalid) {
		t.Errorf("an engine's own TakeAll: got error %v, want one that wraps ErrInvalid", err)
	}
}
