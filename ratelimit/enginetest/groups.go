package enginetest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// multiTaker returns the engine, which the test needs to be a MultiTaker that decides at
// one instant.
func (e *engineTest) multiTaker() engine.MultiTaker {
	m, ok := e.engine.Limiter.(engine.MultiTaker)
	if !ok || e.gaps.InOrder {
		e.Skip("skipped: the engine does not decide about several charges at one instant")
	}
	return m
}

func testWrongGroups(e *engineTest) {
	m, p := e.multiTaker(), plan(ratelimit.PerDay(10))
	good := ratelimit.Charge{Subject: "a", Plan: p, Cost: 1}
	for _, call := range []struct {
		name    string
		charges []ratelimit.Charge
		want    error
	}{
		{"none", nil, ratelimit.ErrInvalid},
		{"no plan", []ratelimit.Charge{good, {Subject: "b", Cost: 1}}, ratelimit.ErrInvalid},
		{"a plan without quotas", []ratelimit.Charge{good, {Subject: "b", Plan: new(ratelimit.Plan), Cost: 1}}, ratelimit.ErrInvalid},
		{"no subject", []ratelimit.Charge{good, {Plan: p, Cost: 1}}, ratelimit.ErrInvalid},
		{"no cost", []ratelimit.Charge{good, {Subject: "b", Plan: p}}, ratelimit.ErrInvalid},
		{"a negative cost", []ratelimit.Charge{good, {Subject: "b", Plan: p, Cost: -1}}, ratelimit.ErrInvalid},
		{"a cost over the limit", []ratelimit.Charge{good, {Subject: "b", Plan: p, Cost: 11}}, ratelimit.ErrCostExceedsLimit},
		{"a subject twice", []ratelimit.Charge{good, {Subject: "b", Plan: p, Cost: 1}, good}, ratelimit.ErrInvalid},
		{"too many", make([]ratelimit.Charge, 9), ratelimit.ErrInvalid},
	} {
		e.wantInvalid(call.name, m.TakeAll(ctx, call.charges, make([]ratelimit.Decision, len(call.charges))), call.want)
	}
	e.wantInvalid("no room for the decision", m.TakeAll(ctx, []ratelimit.Charge{good}, nil), ratelimit.ErrInvalid)
	e.want("wrong groups charge nothing", e.take(p), allowed, 9)
}

// testConcurrentGroups has callers that share two subjects, which they name in
// different orders, and have one each of their own.
func testConcurrentGroups(e *engineTest) {
	const callers, each, limit = 16, 50, 333
	m := e.multiTaker()
	window := fixedwindow.MaxLength // so that it does not end in the middle
	all := plan(ratelimit.Quota{Limit: limit, Window: window})
	own := plan(ratelimit.Quota{Limit: 1000, Window: window})
	var admitted [callers]atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			charges := []ratelimit.Charge{{Subject: fmt.Sprint("caller ", i), Plan: own, Cost: 1}, {Subject: "all", Plan: all, Cost: 1}, {Subject: "most", Plan: own, Cost: 1}}
			charges[i%3], charges[0] = charges[0], charges[i%3]
			decisions := make([]ratelimit.Decision, len(charges))
			for range each {
				if err := m.TakeAll(ctx, charges, decisions); err != nil {
					e.Error(err)
					return
				}
				n := 0
				for k := range decisions {
					if decisions[k].Allowed() {
						n++
					}
				}
				if n == len(charges) {
					admitted[i].Add(1)
				} else if n > 0 {
					e.Errorf("%d of %d charges were made, want all or none", n, len(charges))
				}
			}
		})
	}
	wg.Wait()
	var sum int64
	for i := range callers {
		n := admitted[i].Load()
		sum += n
		e.want(fmt.Sprintf("caller %d, of whom %d groups were admitted", i, n), e.takeN(fmt.Sprint("caller ", i), own, 1), allowed, 1000-n-1)
	}
	if sum != limit {
		e.Errorf("of %d concurrent groups against a limit of %d, %d were admitted, want the limit", callers*each, limit, sum)
	}
	e.want("the other subject of all groups", e.takeN("most", own, 1), allowed, 1000-limit-1)
	e.want("the subject that refused", e.takeN("all", all, 1), limited, 0)
}
