package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/plan"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

var must = testcheck.NoError

var (
	user     = ratelimit.MustPlan("user", ratelimit.Penalty{}, ratelimit.PerMinute(2))
	company  = ratelimit.MustPlan("company", ratelimit.Penalty{}, ratelimit.PerMinute(3), ratelimit.PerDay(100))
	everyone = ratelimit.MustPlan("everyone", ratelimit.Penalty{}, ratelimit.PerHour(4))
)

// charges are those of a request by ann.
func charges(cost int64) []ratelimit.Charge {
	return []ratelimit.Charge{
		{Subject: "user:ann", Plan: user, Cost: cost},
		{Subject: "company:7", Plan: company, Cost: cost},
		{Subject: "everyone", Plan: everyone, Cost: cost},
	}
}

// The methods that engines without TakeAll have.
type (
	onlyTake struct{ ratelimit.Limiter }
	onlyPeek struct {
		ratelimit.Limiter
		engine.Peeker
	}
	takeAndAdjust struct {
		ratelimit.Limiter
		engine.Adjuster
	}
	allThree struct {
		ratelimit.Limiter
		engine.Peeker
		engine.Adjuster
	}
)

func newModel() enginetest.Model {
	return enginetest.NewModel(func() time.Time { return time.Unix(now, 0) })
}

// outcome is what a test compares of a decision.
type outcome struct {
	Outcome ratelimit.Outcome
	Left    int64 // of the applicable quota
	Plan    string
}

func outcomes(decisions []ratelimit.Decision) (all []outcome) {
	for i := range decisions {
		if d := &decisions[i]; d.Plan != nil {
			all = append(all, outcome{d.Outcome, d.Remaining(), d.Plan.Name()})
		} else {
			all = append(all, outcome{})
		}
	}
	return all
}

// takeInOrder makes charges, and fails the test unless the outcomes are as wanted.
func takeInOrder(ctx context.Context, t *testing.T, l ratelimit.Limiter, charges []ratelimit.Charge, want ...outcome) []ratelimit.Decision {
	t.Helper()
	decisions := make([]ratelimit.Decision, len(charges))
	must(t, engine.TakeInOrder(ctx, l, charges, decisions))
	if diff := cmp.Diff(want, outcomes(decisions)); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
	return decisions
}

// Engines that cannot charge all at once are asked one charge after the other.
func TestTakeAllInOrder(t *testing.T) {
	ctx := context.Background()
	const allowed, limited, skipped = ratelimit.Allowed, ratelimit.Limited, ratelimit.Skipped
	for _, test := range []struct {
		name    string
		limiter func(enginetest.Model) ratelimit.Limiter
		used    map[string]int64 // before
		cost    int64
		want    []outcome
		left    []int64 // of user, company and everyone, afterwards
	}{
		{
			name:    "all have room",
			limiter: func(m enginetest.Model) ratelimit.Limiter { return allThree{m, m, m} },
			cost:    1,
			want:    []outcome{{allowed, 1, "user"}, {allowed, 2, "company"}, {allowed, 3, "everyone"}},
			left:    []int64{1, 2, 3},
		},
		{
			name:    "the first refuses: the others are looked up",
			limiter: func(m enginetest.Model) ratelimit.Limiter { return allThree{m, m, m} },
			used:    map[string]int64{"user:ann": 2, "everyone": 4},
			cost:    1,
			want:    []outcome{{limited, 0, "user"}, {skipped, 3, "company"}, {limited, 0, "everyone"}},
			left:    []int64{0, 3, 0},
		},
		{
			name:    "the first refuses an engine that cannot look up",
			limiter: func(m enginetest.Model) ratelimit.Limiter { return takeAndAdjust{m, m} },
			used:    map[string]int64{"user:ann": 2},
			cost:    1,
			want:    []outcome{{limited, 0, "user"}, {}, {}},
			left:    []int64{0, 3, 4},
		},
		{
			name:    "the last refuses: the others get their units back",
			limiter: func(m enginetest.Model) ratelimit.Limiter { return takeAndAdjust{m, m} },
			used:    map[string]int64{"everyone": 4},
			cost:    1,
			want:    []outcome{{skipped, 2, "user"}, {skipped, 3, "company"}, {limited, 0, "everyone"}},
			left:    []int64{2, 3, 0},
		},
		{
			name:    "the cost does not fit into what is left",
			limiter: func(m enginetest.Model) ratelimit.Limiter { return allThree{m, m, m} },
			used:    map[string]int64{"user:ann": 1, "everyone": 3},
			cost:    2,
			want:    []outcome{{limited, 1, "user"}, {skipped, 3, "company"}, {limited, 1, "everyone"}},
			left:    []int64{1, 3, 1},
		},
		{
			name:    "no refunds: all are looked up first",
			limiter: func(m enginetest.Model) ratelimit.Limiter { return onlyPeek{m, m} },
			used:    map[string]int64{"everyone": 4},
			cost:    1,
			want:    []outcome{{skipped, 2, "user"}, {skipped, 3, "company"}, {limited, 0, "everyone"}},
			left:    []int64{2, 3, 0},
		},
		{
			name:    "no refunds, and all have room",
			limiter: func(m enginetest.Model) ratelimit.Limiter { return onlyPeek{m, m} },
			cost:    2,
			want:    []outcome{{allowed, 0, "user"}, {allowed, 1, "company"}, {allowed, 2, "everyone"}},
			left:    []int64{0, 1, 2},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newModel()
			for i, c := range charges(1) {
				if n := test.used[c.Subject]; n > 0 {
					if _, err := m.Take(ctx, c.Subject, c.Plan, n); err != nil {
						t.Fatal(i, err)
					}
				}
			}
			takeInOrder(ctx, t, test.limiter(m), charges(test.cost), test.want...)
			for i, c := range charges(1) {
				d, err := m.Peek(ctx, c.Subject, c.Plan)
				must(t, err)
				if d.Remaining() != test.left[i] {
					t.Errorf("%s has %d left afterwards, want %d", c.Subject, d.Remaining(), test.left[i])
				}
			}
		})
	}
}

func TestTakeAllWithoutCapabilities(t *testing.T) {
	ctx, m := context.Background(), newModel()
	err := engine.TakeInOrder(ctx, onlyTake{m}, charges(1), make([]ratelimit.Decision, 3))
	if !errors.Is(err, ratelimit.ErrInvalid) || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("three charges: got error %v, want one that wraps ErrInvalid and errors.ErrUnsupported", err)
	}
	one := make([]ratelimit.Decision, 1)
	if err := engine.TakeInOrder(ctx, onlyTake{m}, charges(1)[:1], one); err != nil || !one[0].Allowed() {
		t.Errorf("one charge: got %v and error %v, want an admission", one[0].Outcome, err)
	}
}

func TestDeciding(t *testing.T) {
	state := func(left, reset int64) ratelimit.State { return ratelimit.State{Remaining: left, Reset: now + reset} }
	allowed := func(left, reset int64) ratelimit.Decision {
		return decision(ratelimit.Allowed, 1, state(left, reset))
	}
	skipped := func(left, reset int64) ratelimit.Decision {
		return decision(ratelimit.Skipped, 1, state(left, reset))
	}
	costly := func(left, cost, reset int64) ratelimit.Decision {
		d := allowed(left, reset)
		d.Plan, d.Cost = ratelimit.MustPlan("q", ratelimit.Penalty{}, ratelimit.PerMinute(600)), cost
		return d
	}
	unlimited := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: ratelimit.UnlimitedPlan("u"), Cost: 9}
	soft := func(used, cost int64) ratelimit.Decision {
		d := allowed(fixedwindow.MaxUnits-used, 50)
		d.Plan, d.Cost = ratelimit.MustPlan("soft", ratelimit.Penalty{}, ratelimit.PerMinute(60).Soft()), cost
		return d
	}
	limited := func(reset int64) ratelimit.Decision { return decision(ratelimit.Limited, 1, state(0, reset)) }
	type decisions = []ratelimit.Decision
	for _, test := range []struct {
		name string
		all  decisions
		want int
	}{
		{"none", nil, -1},
		{"one", decisions{allowed(3, 5)}, 0},
		{"the least remaining", decisions{allowed(3, 50), allowed(2, 5), allowed(9, 500)}, 1},
		{"on a tie the later reset", decisions{allowed(3, 5), allowed(3, 50), allowed(3, 7)}, 1},
		{"of equal ones the first", decisions{allowed(3, 5), allowed(3, 5)}, 0},
		{"a denial before less remaining", decisions{skipped(0, 500), limited(5)}, 1},
		{"the longest denial", decisions{limited(5), skipped(1, 500), limited(50), limited(7)}, 2},
		{"of equal denials the first", decisions{skipped(1, 500), limited(50), limited(50)}, 1},
		{"undecided ones are the last", decisions{{}, limited(5), {}}, 1},
		{"undecided beside allowed", decisions{{}, allowed(3, 5)}, 1},
		{"unlike units: the least share", decisions{costly(590, 10, 5), allowed(58, 5)}, 1},
		{"unlike units: it is the later", decisions{allowed(58, 5), costly(400, 100, 5)}, 1},
		{"unlike units: the next such request is refused", decisions{allowed(30, 5), costly(450, 451, 5)}, 1},
		{"an unlimited one has no units", decisions{unlimited, costly(31, 1, 5), allowed(30, 5)}, 2},
		{"soft ones only if there is no other", decisions{soft(99, 1), allowed(3, 5), soft(60, 1)}, 1},
		{"unlike units: soft ones only if there is no other", decisions{soft(9999, 100), allowed(59, 5)}, 1},
		{"of soft ones the most used", decisions{soft(70, 1), soft(71, 1)}, 1},
		{"a denial without an end", decisions{limited(50), {Outcome: ratelimit.Suspended, Plan: ratelimit.SuspendedPlan("s"), Cost: 1}, limited(7)}, 1},
	} {
		if got := engine.Deciding(test.all); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}

// Whatever the charges cost and their order is, the response shows one that refuses the next
// such request if there is one.
func TestDecidingShowsWhatRefusesNext(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	refuses := func(d ratelimit.Decision) bool { return d.Remaining() < d.Cost }
	for range 10_000 {
		all := make([]ratelimit.Decision, 2+random.IntN(4))
		for i := range all {
			limit := 1 + random.Int64N(1000)
			all[i] = ratelimit.Decision{
				Outcome: ratelimit.Allowed, Cost: []int64{1, 1, 1, 1 + random.Int64N(limit)}[random.IntN(4)],
				Plan: ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(limit)),
			}
			all[i].States[0] = ratelimit.State{Remaining: random.Int64N(limit + 1), Reset: int64(i)} // no ties
		}
		first := all[engine.Deciding(all)]
		if slices.ContainsFunc(all, refuses) && !refuses(first) {
			t.Fatalf("of %+v the response shows %+v, which refuses nothing next", all, first)
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if again := all[engine.Deciding(all)]; again != first {
			t.Fatalf("of %+v the response shows %+v or, in this order, %+v", all, first, again)
		}
	}
}

func TestCheckAll(t *testing.T) {
	valid := charges(1)
	burst := ratelimit.MustPlan("burst", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(3))
	nine := make([]ratelimit.Charge, plan.MaxCharges+1)
	for i := range nine {
		nine[i] = ratelimit.Charge{Subject: string(rune('a' + i)), Plan: user, Cost: 1}
	}
	for _, test := range []struct {
		name    string
		charges []ratelimit.Charge
		room    int
		want    error
	}{
		{"valid", valid, 3, nil},
		{"the most", nine[1:], plan.MaxCharges, nil},
		{"none", nil, 0, ratelimit.ErrInvalid},
		{"too many", nine, len(nine), ratelimit.ErrInvalid},
		{"no room for decisions", valid, 2, ratelimit.ErrInvalid},
		{"a subject twice", []ratelimit.Charge{valid[0], valid[1], valid[0]}, 3, ratelimit.ErrInvalid},
		{"a subject twice, under different windows", []ratelimit.Charge{valid[0], {Subject: "user:ann", Plan: everyone, Cost: 1}}, 2, ratelimit.ErrInvalid},
		{"no plan", []ratelimit.Charge{valid[0], {Subject: "b", Cost: 1}}, 2, ratelimit.ErrInvalid},
		{"no subject", []ratelimit.Charge{valid[0], {Plan: user, Cost: 1}}, 2, ratelimit.ErrInvalid},
		{"no cost", []ratelimit.Charge{valid[0], {Subject: "b", Plan: user}}, 2, ratelimit.ErrInvalid},
		{"a cost over a limit", []ratelimit.Charge{valid[0], {Subject: "b", Plan: user, Cost: 3}}, 2, ratelimit.ErrCostExceedsLimit},
		{"a cost over a burst", []ratelimit.Charge{valid[0], {Subject: "b", Plan: burst, Cost: 4}}, 2, ratelimit.ErrCostExceedsLimit},
	} {
		if err := engine.CheckAll(test.charges, make([]ratelimit.Decision, test.room)); !errors.Is(err, test.want) {
			t.Errorf("%s: got error %v, want one that wraps %v", test.name, err, test.want)
		}
	}
}

// One of several charges may be under a plan without quotas: an unlimited one changes
// nothing, and a suspended one refuses the request without a charge or a strike.
func TestTakeAllWithPlansWithoutQuotas(t *testing.T) {
	tester, debtor := ratelimit.UnlimitedPlan("tester"), ratelimit.SuspendedPlan("debtor")
	spent := ratelimit.MustPlan("user", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1))
	const allowed, limited, skipped, suspended = ratelimit.Allowed, ratelimit.Limited, ratelimit.Skipped, ratelimit.Suspended
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
			[]outcome{{skipped, 0, "tester"}, {limited, 0, "user"}, {skipped, 3, "company"}}, 1},
		{"suspended alone", []ratelimit.Charge{{Subject: "a", Plan: debtor, Cost: 7}}, []outcome{{suspended, 0, "debtor"}}, 0},
		{"suspended last", []ratelimit.Charge{{Subject: "company:7", Plan: company, Cost: 1}, {Subject: "a", Plan: debtor, Cost: 1}},
			[]outcome{{}, {suspended, 0, "debtor"}}, 1},
		{"suspended, another limited", []ratelimit.Charge{{Subject: "spent", Plan: spent, Cost: 1}, {Subject: "a", Plan: debtor, Cost: 1}, {Subject: "b", Plan: tester, Cost: 1}},
			[]outcome{{}, {suspended, 0, "debtor"}, {skipped, 0, "tester"}}, 1},
		{"the same subject under a plan with quotas", []ratelimit.Charge{{Subject: "company:7", Plan: company, Cost: 1}, {Subject: "company:7", Plan: tester, Cost: 1}},
			[]outcome{{allowed, 2, "company"}, {allowed, 0, "tester"}}, 0},
	} {
		model := newModel()
		t.Run(tt.name, func(t *testing.T) {
			_, err := model.Take(t.Context(), "spent", spent, 1)
			must(t, err)
			decisions := make([]ratelimit.Decision, len(tt.charges))
			must(t, ratelimit.TakeAll(t.Context(), model, tt.charges, decisions))
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
