package ratelimit_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// counting counts the calls of an engine, and fails them on demand.
type counting struct {
	*memory.Limiter
	calls atomic.Int64
	fault atomic.Pointer[func(context.Context) error] // nil: none
}

func newCounting(t *testing.T) *counting {
	t.Helper()
	engine, err := memory.New(memory.Options{})
	must(t, err)
	return &counting{Limiter: engine}
}

func (c *counting) fail(fault func(context.Context) error) { c.fault.Store(&fault) }

func (c *counting) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	c.calls.Add(1)
	if fault := c.fault.Load(); fault != nil {
		if err := (*fault)(ctx); err != nil {
			return ratelimit.Decision{}, err
		}
	}
	return c.Limiter.Take(ctx, subject, plan, cost)
}

// arrivals starts requests in a known order and notes the order of their ends.
type arrivals struct {
	*testing.T
	engine *counting
	waiter *ratelimit.Waiter
	plan   *ratelimit.Plan
	begin  time.Time

	mu   sync.Mutex
	ends []string
}

// await runs a test of requests under a plan, with a clock of its own.
func await(t *testing.T, plan *ratelimit.Plan, test func(a *arrivals)) {
	synctest.Test(t, func(t *testing.T) {
		engine := newCounting(t)
		test(&arrivals{T: t, engine: engine, waiter: ratelimit.NewWaiter(engine), plan: plan, begin: time.Now()})
	})
}

// send starts a request and returns when it is admitted or waits.
func (a *arrivals) send(ctx context.Context, name string, cost int64) {
	go func() {
		_, err := a.waiter.Wait(ctx, "job:1", a.plan, cost)
		a.mu.Lock()
		defer a.mu.Unlock()
		what := "admitted"
		if err != nil {
			what = err.Error()
		}
		a.ends = append(a.ends, fmt.Sprintf("%s %s at %v", name, what, time.Since(a.begin).Round(time.Millisecond)))
	}()
	synctest.Wait()
}

// expectUnordered is expect for requests that ended at the same time: the ends are
// sorted first.
func (a *arrivals) expectUnordered(want ...string) {
	a.Helper()
	synctest.Wait()
	a.mu.Lock()
	slices.Sort(a.ends)
	a.mu.Unlock()
	a.expect(want...)
}

// expect compares the ends so far.
func (a *arrivals) expect(want ...string) {
	a.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Equal(a.ends, want) {
		a.Errorf("ends:\n%q\nwant\n%q", a.ends, want)
	}
}

func perSecond(limit int64) *ratelimit.Plan {
	return ratelimit.MustPlan("jobs", ratelimit.Penalty{}, ratelimit.PerSecond(limit))
}

func perMinute(limit int64) *ratelimit.Plan {
	return ratelimit.MustPlan("jobs", ratelimit.Penalty{}, ratelimit.PerMinute(limit))
}

func TestWaitAdmitsInOrderOfArrival(t *testing.T) {
	await(t, perSecond(2), func(a *arrivals) {
		for i := range 7 {
			a.send(a.Context(), fmt.Sprint(i), 1)
		}
		time.Sleep(1500 * time.Millisecond)
		a.send(a.Context(), "late", 1)
		time.Sleep(time.Minute)
		a.expect("0 admitted at 0s", "1 admitted at 0s", "2 admitted at 1s", "3 admitted at 1s",
			"4 admitted at 2s", "5 admitted at 2s", "6 admitted at 3s", "late admitted at 3s")
	})
}

// A request that costs a lot is not overtaken for ever by those that cost little.
func TestWaitDoesNotLetSmallRequestsOvertake(t *testing.T) {
	await(t, perSecond(10), func(a *arrivals) {
		a.send(a.Context(), "first", 5)
		a.send(a.Context(), "large", 10)
		a.send(a.Context(), "small", 1)
		a.expect("first admitted at 0s")
		time.Sleep(time.Minute)
		a.expect("first admitted at 0s", "large admitted at 1s", "small admitted at 2s")
	})
}

func TestWaitCallsTheEngineOnceForAllThatWait(t *testing.T) {
	await(t, perMinute(10), func(a *arrivals) {
		for i := range 1000 {
			a.send(a.Context(), fmt.Sprint(i), 1)
		}
		if got := a.engine.calls.Load(); got != 11 {
			a.Errorf("%d calls of the engine until the first denial, want 10 admissions and 1 denial", got)
		}
		time.Sleep(59 * time.Second)
		if got := a.engine.calls.Load(); got != 11 {
			a.Errorf("%d calls of the engine while 990 requests wait, want the same 11", got)
		}
		time.Sleep(2 * time.Second)
		if got := a.engine.calls.Load(); got != 22 {
			a.Errorf("%d calls of the engine after the next window began, want 22: 10 admissions and 1 denial more", got)
		}
		time.Sleep(100 * time.Minute)
		if got := a.engine.calls.Load(); got != 1000+99 {
			a.Errorf("%d calls of the engine for 1000 requests in 100 windows, want 1099", got)
		}
	})
}

func TestWaitSubjectsDoNotWaitForEachOther(t *testing.T) {
	await(t, perSecond(1), func(a *arrivals) {
		a.send(a.Context(), "0", 1)
		a.send(a.Context(), "1", 1)
		if d, err := a.waiter.Wait(a.Context(), "job:2", a.plan, 1); err != nil || !d.Allowed() {
			a.Errorf("another subject: %v, %v; want allowed at once", d.Outcome, err)
		}
		a.expect("0 admitted at 0s")
		time.Sleep(time.Second)
	})
}
