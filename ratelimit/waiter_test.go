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
	if err != nil {
		t.Fatal(err)
	}
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
	waiter *ratelimit.Waiter
	plan   *ratelimit.Plan
	begin  time.Time

	mu   sync.Mutex
	ends []string
}

func newArrivals(w *ratelimit.Waiter, plan *ratelimit.Plan) *arrivals {
	return &arrivals{waiter: w, plan: plan, begin: time.Now()}
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
func (a *arrivals) expectUnordered(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	a.mu.Lock()
	slices.Sort(a.ends)
	a.mu.Unlock()
	a.expect(t, want...)
}

// expect compares the ends so far.
func (a *arrivals) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Equal(a.ends, want) {
		t.Errorf("ends:\n%q\nwant\n%q", a.ends, want)
	}
}

func perSecond(limit int64) *ratelimit.Plan {
	return ratelimit.MustPlan("jobs", ratelimit.Penalty{}, ratelimit.PerSecond(limit))
}

func TestWaitAdmitsInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArrivals(ratelimit.NewWaiter(newCounting(t)), perSecond(2))
		for i := range 7 {
			a.send(t.Context(), fmt.Sprint(i), 1)
		}
		time.Sleep(1500 * time.Millisecond)
		a.send(t.Context(), "late", 1)
		time.Sleep(time.Minute)
		a.expect(t,
			"0 admitted at 0s", "1 admitted at 0s", "2 admitted at 1s", "3 admitted at 1s",
			"4 admitted at 2s", "5 admitted at 2s", "6 admitted at 3s", "late admitted at 3s")
	})
}

// A request that costs a lot is not overtaken for ever by those that cost little.
func TestWaitDoesNotLetSmallRequestsOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArrivals(ratelimit.NewWaiter(newCounting(t)), perSecond(10))
		a.send(t.Context(), "first", 5)
		a.send(t.Context(), "large", 10)
		a.send(t.Context(), "small", 1)
		a.expect(t, "first admitted at 0s")
		time.Sleep(time.Minute)
		a.expect(t, "first admitted at 0s", "large admitted at 1s", "small admitted at 2s")
	})
}

func TestWaitCallsTheEngineOnceForAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newCounting(t)
		a := newArrivals(ratelimit.NewWaiter(engine), ratelimit.MustPlan("jobs", ratelimit.Penalty{}, ratelimit.PerMinute(10)))
		for i := range 1000 {
			a.send(t.Context(), fmt.Sprint(i), 1)
		}
		if got := engine.calls.Load(); got != 11 {
			t.Errorf("%d calls of the engine until the first denial, want 10 admissions and 1 denial", got)
		}
		time.Sleep(59 * time.Second)
		if got := engine.calls.Load(); got != 11 {
			t.Errorf("%d calls of the engine while 990 requests wait, want the same 11", got)
		}
		time.Sleep(2 * time.Second)
		if got := engine.calls.Load(); got != 22 {
			t.Errorf("%d calls of the engine after the next window began, want 22: 10 admissions and 1 denial more", got)
		}
		time.Sleep(100 * time.Minute)
		if got := engine.calls.Load(); got != 1000+99 {
			t.Errorf("%d calls of the engine for 1000 requests in 100 windows, want 1099", got)
		}
	})
}

func TestWaitSubjectsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiter, plan := ratelimit.NewWaiter(newCounting(t)), perSecond(1)
		a := newArrivals(waiter, plan)
		a.send(t.Context(), "0", 1)
		a.send(t.Context(), "1", 1)
		if d, err := waiter.Wait(t.Context(), "job:2", plan, 1); err != nil || !d.Allowed() {
			t.Errorf("another subject: %v, %v; want allowed at once", d.Outcome, err)
		}
		a.expect(t, "0 admitted at 0s")
		time.Sleep(time.Second)
	})
}
