package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func TestWaitWhenTheEngineFails(t *testing.T) {
	await(t, perSecond(1), func(a *arrivals) {
		for i := range 4 {
			a.send(a.Context(), fmt.Sprint(i), 1)
		}
		a.engine.fail(func(context.Context) error { return ratelimit.ErrUnavailable })
		time.Sleep(time.Minute)
		a.expect("0 admitted at 0s", "1 engine unavailable at 1s", "2 engine unavailable at 1s", "3 engine unavailable at 1s")
		if got := a.engine.calls.Load(); got != 3 {
			a.Errorf("%d calls of the limiter, want 3: two that were decided, and one that failed for all", got)
		}
	})
}

// A request that waited gets the denial it waited for, and how much of it was left, whether it
// gave up or the engine failed.
func TestWaitReturnsTheDenial(t *testing.T) {
	for want, left := range map[error]time.Duration{context.Canceled: 40 * time.Second, ratelimit.ErrUnavailable: 1} {
		await(t, perMinute(1), func(a *arrivals) {
			a.send(a.Context(), "0", 1)
			ctx, cancel := context.WithCancel(a.Context())
			if left > 1 {
				time.AfterFunc(20*time.Second, cancel)
			}
			var done sync.WaitGroup
			for range 2 { // one sleeps, one queues
				done.Go(func() {
					d, err := a.waiter.Wait(ctx, "job:1", a.plan, 1)
					if !errors.Is(err, want) || d.Outcome != ratelimit.Limited || d.Limit() != 1 || d.RetryAfter != left {
						a.Errorf("Wait: %v of %d, retry after %v, %v; want limited to 1, %v and %v", d.Outcome, d.Limit(), d.RetryAfter, err, left, want)
					}
				})
			}
			synctest.Wait()
			a.engine.fail(func(context.Context) error { return ratelimit.ErrUnavailable })
			done.Wait()
			cancel()
		})
	}
}

func TestWaitInvalid(t *testing.T) {
	await(t, perSecond(1), func(a *arrivals) {
		a.send(a.Context(), "0", 1)
		a.send(a.Context(), "1", 1)
		for name, wait := range map[string]func() (ratelimit.Decision, error){
			"no plan":         func() (ratelimit.Decision, error) { return a.waiter.Wait(a.Context(), "job:1", nil, 1) },
			"no subject":      func() (ratelimit.Decision, error) { return a.waiter.Wait(a.Context(), "", a.plan, 1) },
			"cost 0":          func() (ratelimit.Decision, error) { return a.waiter.Wait(a.Context(), "job:1", a.plan, 0) },
			"cost over limit": func() (ratelimit.Decision, error) { return a.waiter.Wait(a.Context(), "job:1", a.plan, 2) },
		} {
			now := time.Now()
			if _, err := wait(); !errors.Is(err, ratelimit.ErrInvalid) || !time.Now().Equal(now) {
				a.Errorf("%s: %v after %v, want ErrInvalid immediately", name, err, time.Since(now))
			}
		}
		time.Sleep(time.Second)
		a.expect("0 admitted at 0s", "1 admitted at 1s")
	})
}

// Plans without quotas decide alone, also while others wait.
func TestWaitPlansWithoutQuotas(t *testing.T) {
	await(t, perSecond(1), func(a *arrivals) {
		a.send(a.Context(), "0", 1)
		a.send(a.Context(), "1", 1)
		d, err := a.waiter.Wait(a.Context(), "job:1", ratelimit.UnlimitedPlan("all"), 5)
		if err != nil || !d.Allowed() {
			a.Errorf("without limit: %v, %v; want allowed", d.Outcome, err)
		}
		d, err = a.waiter.Wait(a.Context(), "job:1", ratelimit.SuspendedPlan("unpaid"), 1)
		if d.Outcome != ratelimit.Suspended || err == nil || err.Error() != "ratelimit: the request is suspended, and waiting does not change that" {
			a.Errorf("suspended: %v, %v; want suspended and an error", d.Outcome, err)
		}
		a.expect("0 admitted at 0s")
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
	penalty := ratelimit.DefaultPenalty()
	penalty.Strikes, penalty.Grace = 1, 0
	await(t, ratelimit.MustPlan("jobs", penalty, ratelimit.PerMinute(1)), func(a *arrivals) {
		a.send(a.Context(), "0", 1)
		ctx, cancel := context.WithTimeout(a.Context(), time.Second)
		defer cancel()
		for range 5 {
			if d, _ := a.waiter.Wait(ctx, "job:1", a.plan, 1); d.Outcome != ratelimit.Limited {
				a.Fatalf("the outcome is %v, want limited", d.Outcome)
			}
		}
		if d, err := a.engine.Peek(a.Context(), "job:1", a.plan); err != nil || d.StrikesLeft != 1 {
			a.Errorf("%d strikes left, %v; want 1, since no wait was a strike", d.StrikesLeft, err)
		}
	})
}

func TestWaitNoticesAnUnbanWithinAMinute(t *testing.T) {
	await(t, perSecond(1), func(a *arrivals) {
		must(a, a.engine.Ban(a.Context(), "job:1", time.Hour, ""))
		a.send(a.Context(), "0", 1)
		time.Sleep(10*time.Minute + time.Second)
		if got := a.engine.calls.Load(); got != 11 {
			a.Errorf("%d calls of the limiter in ten minutes of the ban, want 11", got)
		}
		testcheck.Must(a.engine.Unban(a.Context(), "job:1"))
		time.Sleep(time.Hour)
		a.expect("0 admitted at 11m0s")
	})
}

// An engine that panics in one request does not leave the others behind it waiting.
func TestWaitPanic(t *testing.T) {
	await(t, perSecond(1), func(a *arrivals) {
		a.send(a.Context(), "0", 1)
		type panics struct{}
		go func() {
			defer func() { _ = recover() }()
			_, _ = a.waiter.Wait(context.WithValue(a.Context(), panics{}, true), "job:1", a.plan, 1)
			a.Error("Wait returned, want a panic")
		}()
		synctest.Wait()
		a.engine.fail(func(ctx context.Context) error {
			if ctx.Value(panics{}) != nil {
				panic("engine")
			}
			return nil
		})
		a.send(a.Context(), "2", 1)
		time.Sleep(time.Minute)
		a.expect("0 admitted at 0s", "2 admitted at 1s")
	})
}

func TestNewWaiterWithoutLimiter(t *testing.T) {
	for _, l := range []ratelimit.Limiter{nil, (*memory.Limiter)(nil), &memory.Limiter{}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("NewWaiter of a nil %T returned, want a panic", l)
				}
			}()
			ratelimit.NewWaiter(l)
		}()
	}
}

// An engine that names hardly any time to wait is asked once in a millisecond.
func TestWaitDoesNotCallInABusyLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiter, begin := ratelimit.NewWaiter(&hasty{denials: 100}), time.Now()
		if _, err := waiter.Wait(t.Context(), "job:1", perSecond(1), 1); err != nil || time.Since(begin) < 100*time.Millisecond {
			t.Errorf("admitted after %v (%v), want 100 denials to take a tenth of a second", time.Since(begin), err)
		}
	})
}

// hasty is an engine that names a nanosecond to wait.
type hasty struct{ denials int }

func (l *hasty) Take(_ context.Context, _ string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	d := engine.Uncounted(plan, cost, time.Now())
	if l.denials--; l.denials >= 0 {
		d.Outcome, d.RetryAfter = ratelimit.Limited, 1
	}
	return d, nil
}

func TestWaitCancelled(t *testing.T) {
	await(t, perSecond(4), func(a *arrivals) {
		a.send(a.Context(), "full", 4)
		ctx, cancel := context.WithCancel(a.Context())
		a.send(ctx, "first", 4)
		a.send(ctx, "second", 4)
		a.send(a.Context(), "third", 4)
		calls := a.engine.calls.Load()
		cancel()
		synctest.Wait()
		if got := a.engine.calls.Load() - calls; got != 1 {
			a.Errorf("%d calls of the limiter after two requests were cancelled, want 1, by the request that is first now", got)
		}
		a.expect("first context canceled at 0s", "full admitted at 0s", "second context canceled at 0s")
		time.Sleep(time.Minute)
		a.expect("first context canceled at 0s", "full admitted at 0s", "second context canceled at 0s", "third admitted at 1s")
		if n := ratelimit.Queues(a.waiter); n != 0 {
			a.Errorf("%d queues are kept, want 0", n)
		}
	})
}

// lateContext is a context whose error can be read only once late is closed.
type lateContext struct {
	context.Context
	late chan struct{}
}

func (c lateContext) Err() error {
	if c.Context.Err() != nil {
		<-c.late
	}
	return c.Context.Err()
}

// A request that ends when its queue has gone leaves the next queue of its subject alone.
func TestWaitEndsAfterItsQueue(t *testing.T) {
	await(t, perSecond(2), func(a *arrivals) {
		ctx, cancel := context.WithCancel(a.Context())
		late := make(chan struct{})
		a.send(a.Context(), "full", 2)
		a.send(a.Context(), "first", 1)
		a.send(lateContext{ctx, late}, "late", 1)
		cancel()
		a.engine.fail(func(context.Context) error { return ratelimit.ErrUnavailable })
		time.Sleep(time.Second)
		synctest.Wait()
		a.engine.fail(func(context.Context) error { return nil })
		a.send(a.Context(), "half", 1)
		a.send(a.Context(), "large", 2)
		close(late)
		synctest.Wait()
		a.send(a.Context(), "small", 1) // fits, but large came first
		a.expect("first engine unavailable at 1s", "full admitted at 0s", "half admitted at 1s", "late context canceled at 1s")
		time.Sleep(time.Minute)
	})
}

// A request behind a cancelled one need not wait as long as that one had to.
func TestWaitCancelledRequestMakesRoom(t *testing.T) {
	await(t, perSecond(10), func(a *arrivals) {
		a.send(a.Context(), "half", 5)
		ctx, cancel := context.WithCancel(a.Context())
		a.send(ctx, "large", 10)
		a.send(a.Context(), "small", 5)
		cancel()
		synctest.Wait()
		a.expect("half admitted at 0s", "large context canceled at 0s", "small admitted at 0s")
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
	await(t, perMinute(1), func(a *arrivals) {
		a.send(a.Context(), "0", 1)
		time.Sleep(43 * time.Second)
		check := func(what string) {
			a.Helper()
			for _, after := range []time.Duration{time.Second, 17 * time.Second} {
				ctx, cancel := context.WithTimeout(a.Context(), after)
				now := time.Now()
				d, err := a.waiter.Wait(ctx, "job:1", a.plan, 1)
				if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || !time.Now().Equal(now) {
					a.Errorf("%s, deadline after %v: %v after %v, want DeadlineExceeded immediately", what, after, err, time.Since(now))
				}
				if d.Outcome != ratelimit.Limited || d.RetryAfter != 17*time.Second || d.Limit() != 1 {
					a.Errorf("%s: the decision is %v, retry after %v; want limited and 17s", what, d.Outcome, d.RetryAfter)
				}
				cancel()
			}
		}
		check("first")
		a.send(a.Context(), "1", 1)
		check("in the queue")

		// Two that can be admitted in time; only one is.
		ctx, cancel := context.WithTimeout(a.Context(), 100*time.Second)
		defer cancel()
		a.send(ctx, "2", 1)
		a.send(ctx, "3", 1)
		time.Sleep(80 * time.Second)
		a.expect("0 admitted at 0s", "1 admitted at 1m0s", "2 admitted at 2m0s",
			"3 ratelimit: the request cannot be admitted before the deadline of its context: context deadline exceeded at 2m0s")
	})
}

// A request in the queue fails as soon as the first one is denied for longer than it
// can wait.
func TestWaitFailsAtOnceInTheQueue(t *testing.T) {
	await(t, perMinute(1), func(a *arrivals) {
		ctx, cancel := context.WithTimeout(a.Context(), 100*time.Second)
		defer cancel()
		a.send(a.Context(), "0", 1)
		a.send(a.Context(), "1", 1)
		a.send(ctx, "2", 1)
		a.send(a.Context(), "3", 1)
		// Another process uses the next window.
		elsewhere := engine.Uncounted(a.plan, 0, time.Now().Add(time.Minute))
		must(a, a.engine.Adjust(ctx, "job:1", &elsewhere, 1, ""))
		time.Sleep(4 * time.Minute)
		a.expect("0 admitted at 0s",
			"2 ratelimit: the request cannot be admitted before the deadline of its context: context deadline exceeded at 1m0s",
			"1 admitted at 2m0s", "3 admitted at 3m0s")
	})
}

// While the engine has not answered the first request, nothing is known against the
// deadlines of the others: the denial was that of a request that is gone.
func TestWaitForgetsTheDenialOfACancelledRequest(t *testing.T) {
	await(t, perMinute(2), func(a *arrivals) {
		large, cancel := context.WithCancel(a.Context())
		soon, cancelSoon := context.WithTimeout(a.Context(), 10*time.Second)
		defer cancelSoon()
		a.send(a.Context(), "half", 1)
		a.send(large, "large", 2)
		a.send(a.Context(), "small", 1)
		a.engine.fail(func(context.Context) error { time.Sleep(time.Second); return nil })
		cancel()
		synctest.Wait()
		a.send(soon, "soon", 1)
		a.expect("half admitted at 0s", "large context canceled at 0s")
		time.Sleep(2 * time.Minute)
	})
}

// If the engine returns because the context of one request ended, the others wait on.
func TestWaitDeadlineDuringTheCall(t *testing.T) {
	await(t, perSecond(1), func(a *arrivals) {
		ctx, cancel := context.WithTimeout(a.Context(), 1500*time.Millisecond)
		defer cancel()
		a.send(a.Context(), "0", 1)
		a.send(ctx, "1", 1)
		a.send(a.Context(), "2", 1)
		a.engine.fail(func(ctx context.Context) error {
			if _, hangs := ctx.Deadline(); hangs {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		time.Sleep(time.Minute)
		a.expect("0 admitted at 0s", "1 context deadline exceeded at 1.5s", "2 admitted at 1.5s")
	})
}
