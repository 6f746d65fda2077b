package ratelimit_test

import (
	"context"
	"errors"
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

// Concurrent requests admit exactly the limit in each window, and all end.
func TestWaitConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, err := memory.New(memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		waiter, plan, begin := ratelimit.NewWaiter(engine), perSecond(7), time.Now()
		var inSecond [20]atomic.Int64
		for i := range 100 {
			go func() {
				ctx := t.Context()
				if i%5 == 4 { // is cancelled while it waits
					var cancel context.CancelFunc
					ctx, cancel = context.WithCancel(ctx)
					time.AfterFunc(time.Duration(i)*10*time.Millisecond, cancel)
					defer cancel()
				}
				if _, err := waiter.Wait(ctx, "job:1", plan, 1); err == nil {
					inSecond[time.Since(begin)/time.Second].Add(1)
				} else if !errors.Is(err, context.Canceled) {
					t.Errorf("Wait: %v", err)
				}
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		total := int64(0)
		for i := range inSecond {
			n := inSecond[i].Load()
			total += n
			if n > 7 {
				t.Errorf("second %d: %d admitted, the limit is 7", i, n)
			}
		}
		if total < 80 {
			t.Errorf("%d admitted, want all 80 that were not cancelled", total)
		}
		if n := ratelimit.Queues(waiter); n != 0 {
			t.Errorf("%d queues are kept after all requests ended, want 0", n)
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

func TestWaitCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newCounting(t)
		waiter := ratelimit.NewWaiter(engine)
		a := newArrivals(waiter, perSecond(4))
		a.send(t.Context(), "full", 4)
		ctx, cancel := context.WithCancel(t.Context())
		a.send(ctx, "first", 4)
		a.send(ctx, "second", 4)
		a.send(t.Context(), "third", 4)
		calls := engine.calls.Load()
		cancel()
		synctest.Wait()
		if got := engine.calls.Load() - calls; got != 1 {
			t.Errorf("%d calls of the engine after two requests were cancelled, want 1, by the request that is first now", got)
		}
		a.expectUnordered(t, "first context canceled at 0s", "full admitted at 0s", "second context canceled at 0s")
		time.Sleep(time.Minute)
		a.expect(t, "first context canceled at 0s", "full admitted at 0s", "second context canceled at 0s", "third admitted at 1s")
		if n := ratelimit.Queues(waiter); n != 0 {
			t.Errorf("%d queues are kept, want 0", n)
		}
	})
}

// A request behind a cancelled one need not wait as long as that one had to.
func TestWaitCancelledRequestMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArrivals(ratelimit.NewWaiter(newCounting(t)), perSecond(10))
		a.send(t.Context(), "half", 5)
		ctx, cancel := context.WithCancel(t.Context())
		a.send(ctx, "large", 10)
		a.send(t.Context(), "small", 5)
		cancel()
		synctest.Wait()
		a.expectUnordered(t, "half admitted at 0s", "large context canceled at 0s", "small admitted at 0s")
	})
}

func TestWaitContextAlreadyEnded(t *testing.T) {
	engine := newCounting(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ratelimit.NewWaiter(engine).Wait(ctx, "job:1", perSecond(1), 1); !errors.Is(err, context.Canceled) || engine.calls.Load() != 0 {
		t.Errorf("Wait: %v after %d calls of the engine, want context.Canceled after none", err, engine.calls.Load())
	}
}

func TestWaitFailsAtOnceIfTheDeadlineIsTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiter := ratelimit.NewWaiter(newCounting(t))
		plan := ratelimit.MustPlan("jobs", ratelimit.Penalty{}, ratelimit.PerMinute(1))
		a := newArrivals(waiter, plan)
		a.send(t.Context(), "0", 1)
		time.Sleep(43 * time.Second)
		check := func(what string) {
			t.Helper()
			for _, after := range []time.Duration{time.Second, 17 * time.Second} {
				ctx, cancel := context.WithTimeout(t.Context(), after)
				now := time.Now()
				d, err := waiter.Wait(ctx, "job:1", plan, 1)
				if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || !time.Now().Equal(now) {
					t.Errorf("%s, deadline after %v: %v after %v, want DeadlineExceeded at once", what, after, err, time.Since(now))
				}
				if d.Outcome != ratelimit.Limited || d.RetryAfter != 17*time.Second || d.Limit() != 1 {
					t.Errorf("%s: the decision is %v, retry after %v; want limited and 17s", what, d.Outcome, d.RetryAfter)
				}
				cancel()
			}
		}
		check("first")
		a.send(t.Context(), "1", 1)
		check("in the queue")

		// Two that can be admitted in time; only one is.
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		a.send(ctx, "2", 1)
		a.send(ctx, "3", 1)
		time.Sleep(80 * time.Second)
		a.expect(t, "0 admitted at 0s", "1 admitted at 1m0s", "2 admitted at 2m0s",
			"3 ratelimit: the request cannot be admitted before the deadline of its context: context deadline exceeded at 2m0s")
	})
}

// A request in the queue fails as soon as the first one is denied for longer than it
// can wait.
func TestWaitFailsAtOnceInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newCounting(t)
		plan := ratelimit.MustPlan("jobs", ratelimit.Penalty{}, ratelimit.PerMinute(1))
		a := newArrivals(ratelimit.NewWaiter(engine), plan)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		a.send(t.Context(), "0", 1)
		a.send(t.Context(), "1", 1)
		a.send(ctx, "2", 1)
		a.send(t.Context(), "3", 1)
		// Another process uses the next window.
		if err := engine.AddUsage(ctx, "job:1", plan, [ratelimit.MaxQuotas]int64{1}, time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Minute)
		a.expect(t, "0 admitted at 0s",
			"2 ratelimit: the request cannot be admitted before the deadline of its context: context deadline exceeded at 1m0s",
			"1 admitted at 2m0s", "3 admitted at 3m0s")
	})
}

// While the engine has not answered the first request, nothing is known against the
// deadlines of the others: the denial was that of a request that is gone.
func TestWaitForgetsTheDenialOfACancelledRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newCounting(t)
		plan := ratelimit.MustPlan("jobs", ratelimit.Penalty{}, ratelimit.PerMinute(2))
		a := newArrivals(ratelimit.NewWaiter(engine), plan)
		large, cancel := context.WithCancel(t.Context())
		soon, cancelSoon := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancelSoon()
		a.send(t.Context(), "half", 1)
		a.send(large, "large", 2)
		a.send(t.Context(), "small", 1)
		engine.fail(func(context.Context) error { time.Sleep(time.Second); return nil })
		cancel()
		synctest.Wait()
		a.send(soon, "soon", 1)
		a.expect(t, "half admitted at 0s", "large context canceled at 0s")
		time.Sleep(2 * time.Minute)
	})
}

func TestWaitReturnsHowLongItWouldHaveWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiter := ratelimit.NewWaiter(newCounting(t))
		plan := ratelimit.MustPlan("jobs", ratelimit.Penalty{}, ratelimit.PerMinute(1))
		if _, err := waiter.Wait(t.Context(), "job:1", plan, 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Second, cancel)
		var done sync.WaitGroup
		for range 2 { // one sleeps, one queues
			done.Go(func() {
				d, err := waiter.Wait(ctx, "job:1", plan, 1)
				if !errors.Is(err, context.Canceled) || d.Outcome != ratelimit.Limited || d.RetryAfter != 40*time.Second {
					t.Errorf("Wait: %v, retry after %v, %v; want limited, 40s and context.Canceled", d.Outcome, d.RetryAfter, err)
				}
			})
		}
		done.Wait()
	})
}

func TestWaitWhenTheEngineFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newCounting(t)
		waiter := ratelimit.NewWaiter(engine)
		a := newArrivals(waiter, perSecond(1))
		for i := range 4 {
			a.send(t.Context(), fmt.Sprint(i), 1)
		}
		engine.fail(func(context.Context) error { return ratelimit.ErrUnavailable })
		time.Sleep(time.Minute)
		a.expectUnordered(t, "0 admitted at 0s", "1 ratelimit: unavailable at 1s", "2 ratelimit: unavailable at 1s", "3 ratelimit: unavailable at 1s")
		if got := engine.calls.Load(); got != 3 {
			t.Errorf("%d calls of the engine, want 3: two that were decided, and one that failed for all", got)
		}
	})
}

// If the engine returns because the context of one request ended, the others wait on.
func TestWaitDeadlineDuringTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newCounting(t)
		a := newArrivals(ratelimit.NewWaiter(engine), perSecond(1))
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		a.send(t.Context(), "0", 1)
		a.send(ctx, "1", 1)
		a.send(t.Context(), "2", 1)
		engine.fail(func(ctx context.Context) error {
			if _, hangs := ctx.Deadline(); hangs {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		time.Sleep(time.Minute)
		a.expect(t, "0 admitted at 0s", "1 context deadline exceeded at 1.5s", "2 admitted at 1.5s")
	})
}

func TestWaitInvalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiter := ratelimit.NewWaiter(newCounting(t))
		plan := perSecond(1)
		a := newArrivals(waiter, plan)
		a.send(t.Context(), "0", 1)
		a.send(t.Context(), "1", 1)
		for name, wait := range map[string]func() (ratelimit.Decision, error){
			"no plan":         func() (ratelimit.Decision, error) { return waiter.Wait(t.Context(), "job:1", nil, 1) },
			"no subject":      func() (ratelimit.Decision, error) { return waiter.Wait(t.Context(), "", plan, 1) },
			"cost 0":          func() (ratelimit.Decision, error) { return waiter.Wait(t.Context(), "job:1", plan, 0) },
			"cost over limit": func() (ratelimit.Decision, error) { return waiter.Wait(t.Context(), "job:1", plan, 2) },
		} {
			now := time.Now()
			if _, err := wait(); !errors.Is(err, ratelimit.ErrInvalid) || !time.Now().Equal(now) {
				t.Errorf("%s: %v after %v, want ErrInvalid at once", name, err, time.Since(now))
			}
		}
		time.Sleep(time.Second)
		a.expect(t, "0 admitted at 0s", "1 admitted at 1s")
	})
}

// Plans without quotas decide alone, also while others wait.
func TestWaitPlansWithoutQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiter := ratelimit.NewWaiter(newCounting(t))
		a := newArrivals(waiter, perSecond(1))
		a.send(t.Context(), "0", 1)
		a.send(t.Context(), "1", 1)
		d, err := waiter.Wait(t.Context(), "job:1", ratelimit.UnlimitedPlan("all"), 5)
		if err != nil || !d.Allowed() {
			t.Errorf("without limit: %v, %v; want allowed", d.Outcome, err)
		}
		d, err = waiter.Wait(t.Context(), "job:1", ratelimit.SuspendedPlan("unpaid"), 1)
		if d.Outcome != ratelimit.Suspended || err == nil || err.Error() != "ratelimit: the request is suspended, and waiting does not change that" {
			t.Errorf("suspended: %v, %v; want suspended and an error", d.Outcome, err)
		}
		a.expect(t, "0 admitted at 0s")
		time.Sleep(time.Second)
	})
}

// refusing is an engine whose denials name no time.
type refusing struct{}

func (refusing) Take(_ context.Context, _ string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{Outcome: ratelimit.Limited, Plan: plan, Cost: cost}, nil
}

func TestWaitForNothing(t *testing.T) {
	d, err := ratelimit.NewWaiter(refusing{}).Wait(t.Context(), "job:1", perSecond(1), 1)
	if err == nil || errors.Is(err, context.DeadlineExceeded) || d.Outcome != ratelimit.Limited {
		t.Errorf("Wait: %v, %v; want limited and an error that is no deadline", d.Outcome, err)
	}
}

func TestWaitIsNotAStrike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newCounting(t)
		penalty := ratelimit.DefaultPenalty()
		penalty.Strikes, penalty.Grace = 1, 0
		plan := ratelimit.MustPlan("jobs", penalty, ratelimit.PerMinute(1))
		if _, err := engine.Take(t.Context(), "job:1", plan, 1); err != nil {
			t.Fatal(err)
		}
		waiter := ratelimit.NewWaiter(engine)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 5 {
			if d, _ := waiter.Wait(ctx, "job:1", plan, 1); d.Outcome != ratelimit.Limited {
				t.Fatalf("the outcome is %v, want limited", d.Outcome)
			}
		}
		if d, err := engine.Peek(t.Context(), "job:1", plan); err != nil || d.StrikesLeft != 1 {
			t.Errorf("%d strikes left, %v; want 1, since no wait was a strike", d.StrikesLeft, err)
		}
	})
}

func TestWaitNoticesAnUnbanWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newCounting(t)
		if err := engine.Ban(t.Context(), "job:1", time.Hour); err != nil {
			t.Fatal(err)
		}
		a := newArrivals(ratelimit.NewWaiter(engine), perSecond(1))
		a.send(t.Context(), "0", 1)
		time.Sleep(10*time.Minute + time.Second)
		if got := engine.calls.Load(); got != 11 {
			t.Errorf("%d calls of the engine in ten minutes of the ban, want 11", got)
		}
		if _, err := engine.Unban(t.Context(), "job:1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		a.expect(t, "0 admitted at 11m0s")
	})
}

// An engine that panics in one request does not leave the others behind it waiting.
func TestWaitPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newCounting(t)
		waiter, plan := ratelimit.NewWaiter(engine), perSecond(1)
		a := newArrivals(waiter, plan)
		a.send(t.Context(), "0", 1)
		type panics struct{}
		go func() {
			defer func() { _ = recover() }()
			_, _ = waiter.Wait(context.WithValue(t.Context(), panics{}, true), "job:1", plan, 1)
			t.Error("Wait returned, want a panic")
		}()
		synctest.Wait()
		engine.fail(func(ctx context.Context) error {
			if ctx.Value(panics{}) != nil {
				panic("engine")
			}
			return nil
		})
		a.send(t.Context(), "2", 1)
		time.Sleep(time.Minute)
		a.expect(t, "0 admitted at 0s", "2 admitted at 1s")
	})
}

func TestNewWaiterWithoutLimiter(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("NewWaiter(nil) returned, want a panic")
		}
	}()
	ratelimit.NewWaiter(nil)
}
