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

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

var groupPlans = func() []*ratelimit.Plan {
	soft := ratelimit.Penalty{
		Strikes: 3, Grace: time.Second, Ban: 5 * time.Second, Growth: 3, Max: time.Minute, Forgive: 30 * time.Second,
	}
	hard := soft
	hard.Grace, hard.Strikes = 0, 1
	sec := func(limit int64, s int) ratelimit.Quota {
		return ratelimit.Quota{Limit: limit, Window: time.Duration(s) * time.Second}
	}
	return []*ratelimit.Plan{
		ratelimit.MustPlan("soft", soft, sec(7, 10), sec(12, 60)),
		ratelimit.MustPlan("hard", hard, sec(7, 10), sec(12, 60)),
		ratelimit.MustPlan("none", ratelimit.Penalty{}, sec(4, 10)),
		ratelimit.MustPlan("other", soft, sec(5, 3), sec(9, 7), sec(30, 600)),
		ratelimit.MustPlan("others", hard, sec(5, 4), sec(9, 8), sec(20, 16), sec(90, 32)),
		ratelimit.MustPlan("month", soft, sec(7, 10), ratelimit.PerMonth(60)),
		ratelimit.MustPlan("smooth", soft, sec(7, 10).Smooth(4), sec(20, 60)),
		ratelimit.MustPlan("smooth too", hard, sec(9, 10).Smooth(9), sec(11, 60).Smooth(2), ratelimit.PerMonth(60)),
		ratelimit.MustPlan("billing", hard, ratelimit.PerDay(40).In(time.UTC), ratelimit.PerMonth(50).From(31)),
		ratelimit.MustPlan("smooth", soft, sec(7, 10).Smooth(4)),
		ratelimit.MustPlan("smoother", ratelimit.Penalty{}, sec(11, 10).Smooth(3)),
		// A quotient of the script, in floating point, is a little less than eleven.
		ratelimit.MustPlan("eleven a year", ratelimit.Penalty{}, ratelimit.Quota{Limit: 11, Window: fixedwindow.MaxLength}.Smooth(11)),
		ratelimit.MustPlan("smooth and fixed", hard, sec(9, 10), sec(7, 10).Smooth(5), sec(90, 60).Smooth(9)),
		ratelimit.MustPlan("smooth month", soft, ratelimit.PerMonth(60), sec(11, 10).Smooth(3)),
	}
}()

// seeds returns how many random histories a test makes.
func seeds() int {
	if testenv.IsLong() {
		return race.Fewer(50)
	}
	return race.Fewer(4)
}

// What many callers ask at once, about one subject or about several, is answered as if they
// had asked the model one after the other at that instant, in the order in which they came.
func TestGroupsAgreeWithModel(t *testing.T) {
	for seed := range 2 * seeds() {
		testGroups(t, uint64(seed), 100)
	}
}

func testGroups(t *testing.T, seed uint64, steps int) {
	t.Helper()
	start := time.Date(2026, time.March, 1, 12, 0, 30, 250_000_000, time.UTC)
	if seed%2 == 1 { // a minute before months end
		start = time.Date(2026, time.March, 30, 23, 59, 0, 0, time.UTC).AddDate(0, 0, int(seed/2%2))
	}
	l, m := serverAt(t, start)
	clock := ratelimittest.NewClock(start)
	model := enginetest.NewModel(clock.Now)
	r := rand.New(rand.NewPCG(seed, 1))
	few := [2]*ratelimit.Plan{groupPlans[r.IntN(len(groupPlans))], groupPlans[r.IntN(len(groupPlans))]}
	plan := func(others int) *ratelimit.Plan { // one time in so many of any kind, else of a few
		if r.IntN(others) == 0 {
			return groupPlans[r.IntN(len(groupPlans))]
		}
		return few[r.IntN(2)]
	}
	var log []string
	for range steps {
		now := clock.Now().Add(time.Duration(r.IntN(4000)-500) * time.Millisecond)
		clock.Set(now)
		m.SetTime(now)
		b := new(batch)
		add := func(op operation, what ...any) {
			for range 1 + r.IntN(9) {
				b.add(op, newCall())
			}
			log = append(log, fmt.Sprint(now.Format("15:04:05.000"), what))
		}
		if seed%4 < 2 {
			for range 1 + r.IntN(4) {
				op := operation{code: opTake, subject: fmt.Sprint(r.IntN(3)), plan: plan(1), cost: 1 + r.Int64N(2)}
				add(op, op.subject, "costs", op.cost, "under", op.plan)
			}
		} else {
			subjects := r.Perm(4) // no two groups of a batch share one, as their order is not known
			for len(subjects) > 0 {
				charges := make([]ratelimit.Charge, min(1+r.IntN(3), len(subjects)))
				for i, subject := range subjects[:len(charges)] {
					charges[i] = ratelimit.Charge{Subject: fmt.Sprint(subject), Plan: plan(8), Cost: 1 + r.Int64N(2)}
				}
				subjects = subjects[len(charges):]
				add(operation{code: opTakeAll, subject: charges[0].Subject, takes: newTakes(charges)}, charges)
			}
		}
		b.seal()
		// A batch's commands run in their order. Groups that turned out to need
		// the index of bans had no effect then, and run after them.
		var order, second []*group
		for _, cmd := range l.sender.pack(b.groups) {
			order = append(order, cmd.groups...)
		}
		l.sender.send(b.groups)
		order = slices.DeleteFunc(order, func(g *group) bool {
			if g.index == indexGiven {
				second = append(second, g)
			}
			return g.index == indexGiven
		})
		for _, g := range append(order, second...) {
			must(t, g.err)
			if diff := g.diff(t, model); diff != "" {
				t.Fatalf("seed %d: the engine (+) and the model (-) differ after\n%s\n%s", seed, strings.Join(log[max(len(log)-12, 0):], "\n"), diff)
			}
		}
	}
}

// charges returns those of each request of a group.
func (g *group) charges() []ratelimit.Charge {
	if g.takes != nil {
		return g.takes.charges
	}
	return []ratelimit.Charge{{Subject: g.subject, Plan: g.plan, Cost: g.cost}}
}

// ask has the model decide about the requests of a group, one after the other.
func (g *group) ask(m enginetest.Model) (decisions []ratelimit.Decision) {
	for range g.requests {
		one := make([]ratelimit.Decision, len(g.charges()))
		_ = m.TakeAll(context.Background(), g.charges(), one)
		decisions = append(decisions, one...)
	}
	return decisions
}

// diff has the model decide, and returns how the answers of the engine differ.
func (g *group) diff(t *testing.T, m enginetest.Model) string {
	t.Helper()
	var got []ratelimit.Decision
	for place := range g.requests {
		for i, c := range g.charges() {
			answer := &g.answer
			if g.takes != nil {
				answer = &g.takes.answers[i]
			}
			d, err := answer.decision(c.Plan, c.Cost, place)
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

// settle has the engine know what it learns from the first answers, so that it sends no
// command twice, after the others.
func settle(t *testing.T, l *Limiter, serverTime time.Time) {
	t.Helper()
	l.sender.aheadNanos.Store(int64(time.Until(serverTime)))
	must(t, l.sender.client.ScriptLoad(context.Background(), script).Err())
}
