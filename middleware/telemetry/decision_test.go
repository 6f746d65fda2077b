package telemetry_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var free = ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerDay(1000))

// decided returns a decision under a plan whose applicable quota is the i-th, with some
// units left.
func decided(plan *ratelimit.Plan, outcome ratelimit.Outcome, i int, left int64) ratelimit.Decision {
	d := ratelimit.Decision{Outcome: outcome, Plan: plan, Cost: 1, Applicable: i}
	d.States[i].Remaining = left
	return d
}

func observe(t collected, c ratelimit.Caller, d ratelimit.Decision, err error) {
	t.Decision(httptest.NewRequest("GET", "/", nil), c, d, err)
}

func TestDecisionsAreCounted(t *testing.T) {
	c := collect(t)
	caller := ratelimit.Caller{Subject: "owner:ann", Plan: free}
	for _, d := range []ratelimit.Decision{
		decided(free, ratelimit.Allowed, 0, 59),
		decided(free, ratelimit.Allowed, 0, 7),
		decided(free, ratelimit.Allowed, 0, 6), // a tenth is left
		decided(free, ratelimit.Allowed, 1, 0),
		decided(free, ratelimit.Limited, 1, 0),
		decided(free, ratelimit.Banned, 0, 0),
		decided(free, ratelimit.Banned, 0, 50), // not near the limit: it was not allowed
	} {
		observe(c, caller, d, nil)
	}
	for _, plan := range []*ratelimit.Plan{ratelimit.UnlimitedPlan("tester"), ratelimit.SuspendedPlan("debtor"), ratelimit.SuspendedPlan("debtor")} {
		d, err := engine.Decide("owner:ann", plan, 1)
		observe(c, ratelimit.Caller{Subject: "owner:ann", Plan: plan}, d, err)
	}
	observe(c, caller, ratelimit.Decision{Plan: free}, errors.New("the engine failed"))
	observe(c, caller, ratelimit.Decision{Plan: free}, nil) // of an engine that set no outcome
	observe(c, ratelimit.Caller{}, ratelimit.Decision{}, ratelimit.ErrInvalid)

	want := map[string]int64{
		"free allowed minute": 3, "free allowed day": 1, "free limited day": 1, "free banned minute": 2,
		"tester allowed ": 1, "debtor suspended ": 2, "free undecided ": 2, " undecided ": 1,
	}
	if diff := cmp.Diff(want, nonzero(c.series(t, "gatehouse.rate_limiting.requests"))); diff != "" {
		t.Errorf("requests by plan, result and window (-want +got):\n%s", diff)
	}
	want = map[string]int64{"free minute": 1, "free day": 1}
	if diff := cmp.Diff(want, nonzero(c.series(t, "gatehouse.rate_limiting.near_limit"))); diff != "" {
		t.Errorf("requests near the limit by plan and window (-want +got):\n%s", diff)
	}
}

func TestStrikesAndBansAreCounted(t *testing.T) {
	c := collect(t)
	caller := ratelimit.Caller{Subject: "owner:ann", Plan: free}
	limited, banned := decided(free, ratelimit.Limited, 0, 0), decided(free, ratelimit.Banned, 0, 0)
	observe(c, caller, limited, nil) // within the grace
	limited.Struck = true
	observe(c, caller, limited, nil)
	observe(c, caller, limited, nil)
	start := banned
	start.Struck = true
	observe(c, caller, start, nil)
	observe(c, caller, banned, nil)
	// A request that the limit of an organisation decides is counted for its caller. The numbers
	// of the limit are those of the organisation.
	organisation := ratelimit.MustPlan("organisation", ratelimit.DefaultPenalty(), ratelimit.PerDay(10))
	start = decided(organisation, ratelimit.Banned, 0, 0)
	start.Struck = true
	observe(c, caller, start, nil)
	observe(c, caller, decided(organisation, ratelimit.Allowed, 0, 0), nil)
	for name, want := range map[string]map[string]int64{
		"gatehouse.rate_limiting.strikes":    {"free": 3, "organisation": 1},
		"gatehouse.bans.started":             {"free": 1, "organisation": 1},
		"gatehouse.rate_limiting.near_limit": {"organisation day": 1},
		"gatehouse.rate_limiting.requests":   {"free limited minute": 3, "free banned minute": 2, "free banned day": 1, "free allowed day": 1},
	} {
		if diff := cmp.Diff(want, nonzero(c.series(t, name))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWindowsHaveTheNamesOfQuotas(t *testing.T) {
	c := collect(t)
	for name, quota := range map[string]ratelimit.Quota{
		"second": ratelimit.PerSecond(1), "minute": ratelimit.PerMinute(1), "hour": ratelimit.PerHour(1), "day": ratelimit.PerDay(1),
		"month": ratelimit.PerMonth(1), "local-day": ratelimit.PerDay(1).In(time.UTC), "smooth-minute": ratelimit.PerMinute(1).Smooth(1),
		"900s": {Limit: 1, Window: 15 * time.Minute}, "smooth-90s": ratelimit.Quota{Limit: 1, Window: 90 * time.Second}.Smooth(1),
	} {
		plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, quota)
		observe(c, ratelimit.Caller{Plan: plan}, decided(plan, ratelimit.Limited, 0, 0), nil)
		if got := c.series(t, "gatehouse.rate_limiting.requests")["p limited "+name]; got != 1 {
			t.Errorf("%v: %d requests with gatehouse.window %s, want 1", quota, got, name)
		}
	}
}

// The first strike, ban or failure of a plan changes a series from 0 to 1, which rate
// functions see, rather than creating a series with 1, which they do not.
func TestSeriesBeginWithZero(t *testing.T) {
	c := collect(t)
	c.Plan("free")
	for instrument, series := range map[string]string{
		"gatehouse.rate_limiting.requests":  "free undecided ",
		"gatehouse.rate_limiting.strikes":   "free",
		"gatehouse.bans.started":            "free",
		"gatehouse.bans.unbanned":           "",
		"gatehouse.panics":                  "",
		"gatehouse.authentication.requests": "invalid",
	} {
		if n, ok := c.series(t, instrument)[series]; !ok || n != 0 {
			t.Errorf("%s of %q is %d, %t; want a series with 0", instrument, series, n, ok)
		}
	}
}

func TestPlansAndWindowsAreBounded(t *testing.T) {
	const (
		plans   = 300
		windows = 70
		sdk     = 2000 // where an SDK begins to merge series
	)
	c := collect(t)
	total := int64(0)
	for i := range plans {
		for j := range windows {
			plan := ratelimit.MustPlan(fmt.Sprint("plan ", i), ratelimit.Penalty{},
				ratelimit.Quota{Limit: 1, Window: time.Duration(j+1) * time.Second})
			for _, outcome := range []ratelimit.Outcome{ratelimit.Allowed, ratelimit.Limited, ratelimit.Banned} {
				observe(c, ratelimit.Caller{Plan: plan}, decided(plan, outcome, 0, 0), nil)
				total++
			}
		}
	}
	series := c.series(t, "gatehouse.rate_limiting.requests")
	if len(series) >= sdk {
		t.Errorf("%d series, want fewer than %d", len(series), sdk)
	}
	sum, others, pairs := int64(0), int64(0), 0
	for name, n := range series {
		sum += n
		if strings.Contains(name, " allowed ") && !strings.HasSuffix(name, " other") {
			pairs++
		}
		if strings.HasPrefix(name, "other ") {
			others += n
		}
	}
	if pairs != 400 {
		t.Errorf("%d pairs of a plan and a window have names of their own, want the first 400", pairs)
	}
	if sum != total {
		t.Errorf("the series sum up to %d requests, want %d: none is lost", sum, total)
	}
	if want := int64((plans - 100) * windows * 3); others != want {
		t.Errorf("%d requests of the plan other, want the %d of the plans after the first 100", others, want)
	}
	if n := series["plan 0 allowed second"]; n != 1 {
		t.Errorf("%d requests of the first plan, want 1 under its own name", n)
	}
}

func TestConcurrentDecisionsAreAllCounted(t *testing.T) {
	const goroutines, each = 8, 1000
	c := collect(t)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for i := range each {
				plan := ratelimit.MustPlan(fmt.Sprint("plan ", i%150), ratelimit.Penalty{}, ratelimit.PerMinute(1))
				observe(c, ratelimit.Caller{Plan: plan}, decided(plan, ratelimit.Limited, 0, 0), nil)
			}
		})
	}
	wg.Wait()
	sum := int64(0)
	for _, n := range c.series(t, "gatehouse.rate_limiting.requests") {
		sum += n
	}
	if sum != goroutines*each {
		t.Errorf("%d decisions are counted, want %d", sum, goroutines*each)
	}
}
