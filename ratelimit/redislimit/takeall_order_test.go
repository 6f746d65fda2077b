package redislimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

// Groups of takes that share calls of the script, and subjects, are answered as if they
// had asked the model one after the other at that instant, in some order.
func TestGroupsThatShareSubjects(t *testing.T) {
	for seed := range race.Fewer(2) {
		testGroupsThatShareSubjects(t, uint64(seed))
	}
}

func testGroupsThatShareSubjects(t *testing.T, seed uint64) {
	t.Helper()
	start := time.Date(2026, time.March, 30, 23, 59, 0, 0, time.UTC).AddDate(0, 0, int(seed%2))
	l, m := serverAt(t, start)
	clock := enginetest.NewClock(start)
	r := rand.New(rand.NewPCG(seed, 2))
	type past []func(enginetest.Model) // all that was done, clock included
	pasts := []past{nil}               // those that explain all answers
	var log []string
	for range 20 {
		now := clock.Now().Add(time.Duration(r.IntN(4000)-500) * time.Millisecond)
		m.SetTime(now)
		for i, p := range pasts {
			pasts[i] = append(p[:len(p):len(p)], func(enginetest.Model) { clock.Set(now) })
		}
		clock.Set(now)
		b := new(batch)
		for range 1 + r.IntN(3) {
			charges := make([]ratelimit.Charge, 1+r.IntN(3))
			for k, subject := range r.Perm(4)[:len(charges)] {
				charges[k] = ratelimit.Charge{Subject: fmt.Sprint(subject), Plan: groupPlans[r.IntN(len(groupPlans))], Cost: 1 + r.Int64N(2)}
				if r.IntN(3) > 0 {
					charges[k].Plan = groupPlans[subject]
				}
			}
			for range 1 + r.IntN(3) {
				b.add(operation{code: opTakeAll, subject: charges[0].Subject, takes: newTakes(charges)}, newCall())
			}
			log = append(log, fmt.Sprint(now.Format("15:04:05.000"), charges))
		}
		groups := b.groups
		must(t, b.exchange(l))
		var explaining []past
		var diff string
		for _, p := range pasts {
			for order := range permutations(len(groups)) {
				model := enginetest.NewModel(clock.Now)
				for _, f := range p {
					f(model)
				}
				next := p[:len(p):len(p)]
				for _, i := range order {
					if diff = groups[i].diff(t, model); diff != "" {
						break
					}
					next = append(next, func(m enginetest.Model) { groups[i].ask(m) })
				}
				if diff == "" {
					explaining = append(explaining, next)
				}
			}
		}
		if len(explaining) == 0 {
			t.Fatalf("seed %d: no order of the last %d groups explains their answers; in the one tried last, the engine (+) and the model (-) differ after\n%s\n%s",
				seed, len(groups), strings.Join(log[max(len(log)-12, 0):], "\n"), diff)
		}
		r.Shuffle(len(explaining), func(i, k int) { explaining[i], explaining[k] = explaining[k], explaining[i] })
		pasts = explaining[:min(len(explaining), 12)]
	}
}

// ask has the model decide about the requests of a group of takes, one after the other.
func (g *group) ask(m enginetest.Model) (decisions []ratelimit.Decision) {
	for range g.requests {
		one := make([]ratelimit.Decision, len(g.takes.charges))
		_ = m.TakeAll(context.Background(), g.takes.charges, one)
		decisions = append(decisions, one...)
	}
	return decisions
}

// diff has the model decide, and returns how the answers of the engine differ.
func (g *group) diff(t *testing.T, m enginetest.Model) string {
	t.Helper()
	var got []ratelimit.Decision
	for place := range g.requests {
		for i, c := range g.takes.charges {
			d, err := g.takes.answers[i].decision(c.Plan, c.Cost, place)
			must(t, err)
			got = append(got, d)
		}
	}
	want := g.ask(m)
	if slices.Equal(want, got) { // far sooner than Diff
		return ""
	}
	return cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b }))
}

// permutations yields all orders of the numbers below n.
func permutations(n int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		var extend func(order []int) bool
		extend = func(order []int) bool {
			if len(order) == n {
				return yield(order)
			}
		next:
			for i := range n {
				for _, k := range order {
					if k == i {
						continue next
					}
				}
				if !extend(append(order[:len(order):len(order)], i)) {
					return false
				}
			}
			return true
		}
		extend(nil)
	}
}
