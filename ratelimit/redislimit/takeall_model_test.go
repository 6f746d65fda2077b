package redislimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

// Groups of charges that many callers make at once are answered as if they had asked the
// model one after the other at that instant, in the order in which they came.
func TestGroupsOfTakesAgreeWithModel(t *testing.T) {
	for seed := range seeds() {
		testGroupsOfTakes(t, uint64(seed), 100)
	}
}

func testGroupsOfTakes(t *testing.T, seed uint64, steps int) {
	t.Helper()
	start := time.Date(2026, time.March, 1, 12, 0, 30, 250_000_000, time.UTC)
	l, m := serverAt(t, start)
	clock := enginetest.NewClock(start)
	model := enginetest.NewModel(clock.Now)
	r := rand.New(rand.NewPCG(seed, 2))
	plans := [2]*ratelimit.Plan{groupPlans[r.IntN(len(groupPlans))], groupPlans[r.IntN(len(groupPlans))]}
	var log []string
	for range steps {
		now := clock.Now().Add(time.Duration(r.IntN(4000)-500) * time.Millisecond)
		clock.Set(now)
		m.SetTime(now)
		b := new(batch)
		subjects := r.Perm(4) // no two groups of a batch share one, as their order is not known
		for len(subjects) > 0 {
			charges := make([]ratelimit.Charge, min(1+r.IntN(3), len(subjects)))
			for i, subject := range subjects[:len(charges)] {
				plan := plans[r.IntN(2)]
				if r.IntN(8) == 0 {
					plan = groupPlans[r.IntN(len(groupPlans))]
				}
				charges[i] = ratelimit.Charge{Subject: fmt.Sprint(subject), Plan: plan, Cost: 1 + r.Int64N(2)}
			}
			subjects = subjects[len(charges):]
			for range 1 + r.IntN(9) {
				b.add(operation{code: opTakeAll, subject: charges[0].Subject, takes: newTakes(charges)}, newCall())
			}
			log = append(log, fmt.Sprint(now.Format("15:04:05.000"), charges))
		}
		b.seal()
		l.sender.send(b.groups)
		for _, g := range b.groups {
			charges := g.takes.charges
			for c := g.first; c != nil; c = c.next {
				want, got := make([]ratelimit.Decision, len(charges)), make([]ratelimit.Decision, len(charges))
				if err := model.TakeAll(context.Background(), charges, want); err != nil || g.err != nil {
					t.Fatal(err, g.err)
				}
				for i, charge := range charges {
					var err error
					if got[i], err = g.takes.answers[i].decision(charge.Plan, charge.Cost, c.place); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b })); diff != "" {
					t.Fatalf("seed %d: request %d of %d: the engine (+) and the model (-) differ after\n%s\n%s",
						seed, c.place+1, g.requests, strings.Join(log[max(len(log)-12, 0):], "\n"), diff)
				}
			}
		}
	}
}

// Calls about the same charges share a decision, however many groups a batch has.
func TestBatchSharesGroupsOfTakes(t *testing.T) {
	plan, other := groupPlans[0], groupPlans[1]
	take := func(first, second string, plan *ratelimit.Plan, cost int64) operation {
		return operation{code: opTakeAll, subject: first, takes: newTakes([]ratelimit.Charge{
			{Subject: first, Plan: plan, Cost: 1}, {Subject: second, Plan: plan, Cost: cost},
		})}
	}
	b := new(batch)
	for range 2 {
		for i := range 30 { // more than are found without a map
			b.add(take("all", fmt.Sprint(i), plan, 1), newCall())
		}
	}
	if len(b.groups) != 30 || b.groups[29].requests != 2 {
		t.Fatalf("30 pairs, each of them twice, made %d groups, want 30", len(b.groups))
	}
	b.add(take("all", "7", other, 1), newCall())
	b.add(take("all", "7", plan, 2), newCall())
	b.add(take("7", "all", plan, 1), newCall())
	same := take("all", "30", plan, 1)
	same.takes.hash = b.groups[7].takes.hash // of other charges
	b.add(same, newCall())
	if len(b.groups) != 34 {
		t.Fatalf("4 groups of other charges made %d groups more, want 4", len(b.groups)-30)
	}
}
