package ratelimit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

func TestWaitCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newCounting(t)
		waiter := ratelimit.NewWaiter(limiter)
		a := newArrivals(waiter, perSecond(4))
		a.send(t.Context(), "full", 4)
		ctx, cancel := context.WithCancel(t.Context())
		a.send(ctx, "first", 4)
		a.send(ctx, "second", 4)
		a.send(t.Context(), "third", 4)
		calls := limiter.calls.Load()
		cancel()
		synctest.Wait()
		if got := limiter.calls.Load() - calls; got != 1 {
			t.Errorf("%d calls of the limiter after two requests were cancelled, want 1, by the request that is first now", got)
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
	limiter := newCounting(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ratelimit.NewWaiter(limiter).Wait(ctx, "job:1", perSecond(1), 1); !errors.Is(err, context.Canceled) || limiter.calls.Load() != 0 {
		t.Errorf("Wait: %v after %d calls of the limiter, want context.Canceled after none", err, limiter.calls.Load())
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
		limiter := newCounting(t)
		plan := ratelimit.MustPlan("jobs", ratelimit.Penalty{}, ratelimit.PerMinute(1))
		a := newArrivals(ratelimit.NewWaiter(limiter), plan)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		a.send(t.Context(), "0", 1)
		a.send(t.Context(), "1", 1)
		a.send(ctx, "2", 1)
		a.send(t.Context(), "3", 1)
		// Another process uses the next window.
		elsewhere := engine.Uncounted(plan, 0, time.Now().Add(time.Minute))
		if err := limiter.Adjust(ctx, "job:1", &elsewhere, 1, ""); err != nil {
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
		limiter := newCounting(t)
		plan := ratelimit.MustPlan("jobs", ratelimit.Penalty{}, ratelimit.PerMinute(2))
		a := newArrivals(ratelimit.NewWaiter(limiter), plan)
		large, cancel := context.WithCancel(t.Context())
		soon, cancelSoon := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancelSoon()
		a.send(t.Context(), "half", 1)
		a.send(large, "large", 2)
		a.send(t.Context(), "small", 1)
		limiter.fail(func(context.Context) error { time.Sleep(time.Second); return nil })
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

// If the engine returns because the context of one request ended, the others wait on.
func TestWaitDeadlineDuringTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newCounting(t)
		a := newArrivals(ratelimit.NewWaiter(limiter), perSecond(1))
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		a.send(t.Context(), "0", 1)
		a.send(ctx, "1", 1)
		a.send(t.Context(), "2", 1)
		limiter.fail(func(ctx context.Context) error {
			if _, hangs := ctx.Deadline(); hangs {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		time.Sleep(time.Minute)
		a.expect(t, "0 admitted at 0s", "1 context deadline exceeded at 1.5s", "2 admitted at 1.5s")
	})
}
