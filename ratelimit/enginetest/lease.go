package enginetest

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var leases = []promise{
	{name: "refuses wrong leases", test: testWrongLeases,
		text: "Lease with a wrong plan, subject, cost or wrong terms is an error that wraps ErrInvalid, and charges nothing"},
	{name: "gives back nothing to a subject that was reset", test: testLeaseReset,
		text: "units that were charged before a Reset are not given back after it; every answer tells which is which"},
	{name: "never leases more than the limit", test: testConcurrentLeases,
		text: "concurrent leases, of which some come back, charge up to the limit and no more"},
}

func (e *engineTest) lease(p *ratelimit.Plan, cost int64, terms engine.Terms) ratelimit.Decision {
	e.Helper()
	d, err := capability[engine.Leaser](e).Lease(ctx, "a", p, cost, terms)
	if err != nil {
		e.Fatalf("Lease(%v, %d, %+v): %v", p, cost, terms, err)
	}
	e.check(&d)
	return d
}

// unspent is an answer of Lease of which so many units are left.
func unspent(d ratelimit.Decision, units int64) engine.Terms {
	d.Cost = units
	return engine.Terms{Back: &d}
}

func testWrongLeases(e *engineTest) {
	l, p, smooth := capability[engine.Leaser](e), plan(ratelimit.PerDay(10)), plan(ratelimit.PerDay(10).Smooth(5))
	for _, call := range []struct {
		name    string
		subject string
		plan    *ratelimit.Plan
		cost    int64
		terms   engine.Terms
		want    error
	}{
		{"no subject", "", p, 1, engine.Terms{}, ratelimit.ErrInvalid},
		{"no plan", "a", nil, 0, engine.Terms{}, ratelimit.ErrInvalid},
		{"a negative cost", "a", p, -1, engine.Terms{}, ratelimit.ErrInvalid},
		{"a cost over the limit", "a", p, 11, engine.Terms{}, ratelimit.ErrCostExceedsLimit},
		{"a negative share", "a", p, 1, engine.Terms{More: -1}, ratelimit.ErrInvalid},
		{"negative denials", "a", p, 1, engine.Terms{Denied: -1}, ratelimit.ErrInvalid},
		{"a return without a plan", "a", p, 1, engine.Terms{Back: &ratelimit.Decision{Outcome: allowed, Cost: 1}}, ratelimit.ErrInvalid},
		{"a negative return", "a", p, 1, engine.Terms{Back: &ratelimit.Decision{Outcome: allowed, Plan: p, Cost: -1}}, ratelimit.ErrInvalid},
		{"a share of a smooth quota", "a", smooth, 1, engine.Terms{More: 1}, errors.ErrUnsupported},
	} {
		d, err := l.Lease(ctx, call.subject, call.plan, call.cost, call.terms)
		if e.wantInvalid(call.name, err, call.want); d != (ratelimit.Decision{}) {
			e.Errorf("%s: got %+v beside the error, want the zero Decision", call.name, d)
		}
	}
	e.want("wrong leases charge nothing", e.take(p), allowed, 9)
	for _, cost := range []int64{0, 7} {
		d := e.lease(ratelimit.UnlimitedPlan("tester"), cost, engine.Terms{More: 5})
		if !d.Allowed() || d.Cost != cost {
			e.Errorf("under a plan without quotas: got %v with the cost %d, want allowed with %d, and no share", d.Outcome, d.Cost, cost)
		}
	}
}

func testLeaseReset(e *engineTest) {
	l, p := capability[resetter](e), plan(ratelimit.PerDay(100))
	reset := func() {
		e.Helper()
		if err := l.Reset(ctx, "a"); err != nil {
			e.Fatal(err)
		}
	}
	before := e.lease(p, 1, engine.Terms{More: 30})
	same := func(what string, d ratelimit.Decision, want bool) {
		e.Helper()
		is, _ := d.Receipt.Generation()
		if was, _ := before.Receipt.Generation(); is == was != want {
			e.Errorf("%s: the generation is %d, and was %d: the same is %t, want %t", what, is, was, !want, want)
		}
	}
	same("a view", e.lease(p, 0, engine.Terms{}), true)
	same("a denial", e.lease(p, 70, engine.Terms{}), true)
	same("no share", e.lease(plan(ratelimit.PerDay(1)), 0, engine.Terms{More: 1}), true)
	reset()
	e.takeN("a", p, 40)
	same("a view after the reset", e.lease(p, 0, engine.Terms{}), false)
	e.want("a share of before the reset", e.lease(p, 1, unspent(before, 30)), allowed, 59)
	after := e.lease(p, 1, engine.Terms{More: 8})
	reset()
	reset()
	e.want("and of before another one", e.lease(p, 1, unspent(after, 8)), allowed, 99)
	again := e.lease(p, 1, engine.Terms{More: 8})
	e.want("and the first one", e.lease(p, 0, unspent(before, 30)), allowed, 90)
	e.want("one of after the resets", e.lease(p, 0, unspent(again, 8)), allowed, 98)
}

// testConcurrentLeases has holders charge shares, spend a part of each, and give the rest
// back.
func testConcurrentLeases(e *engineTest) {
	const holders, each, limit = 16, 60, 1000
	l := capability[engine.Leaser](e)
	p := plan(ratelimit.Quota{Limit: limit, Window: fixedwindow.MaxLength}) // it does not end in the middle
	var spent, held atomic.Int64
	var wg sync.WaitGroup
	for i := range holders {
		wg.Go(func() {
			var terms engine.Terms
			for k := range each {
				terms.More = int64(i + k%5)
				d, err := l.Lease(ctx, "a", p, int64(k%2), terms)
				if err != nil {
					e.Error(err)
					return
				}
				terms = engine.Terms{}
				if d.Allowed() && d.Cost > 0 {
					terms = unspent(d, d.Cost/2)
					spent.Add(d.Cost - d.Cost/2)
				}
			}
			if terms.Back != nil {
				held.Add(terms.Back.Cost)
			}
		})
	}
	wg.Wait()
	d := e.lease(p, 0, engine.Terms{})
	if used := spent.Load() + held.Load(); limit-d.States[0].Remaining != used || spent.Load() > limit {
		e.Errorf("%d units were spent and %d are held, and %d of %d are left", spent.Load(), held.Load(), d.States[0].Remaining, limit)
	}
	for d = e.lease(p, 1, engine.Terms{More: 8}); d.Allowed(); d = e.lease(p, 1, engine.Terms{More: 8}) {
		spent.Add(d.Cost)
	}
	if n := spent.Load() + held.Load(); n != limit {
		e.Errorf("in the end %d units are charged, want the limit of %d", n, limit)
	}
}
