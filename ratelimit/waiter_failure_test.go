package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
		a.expectUnordered("0 admitted at 0s", "1 engine unavailable at 1s", "2 engine unavailable at 1s", "3 engine unavailable at 1s")
		if got := a.engine.calls.Load(); got != 3 {
			a.Errorf("%d calls of the limiter, want 3: two that were decided, and one that failed for all", got)
		}
	})
}

// A request that waited gets the denial it waited for, also if the engine fails then.
func TestWaitReturnsTheDenialIfTheEngineFails(t *testing.T) {
	await(t, perMinute(1), func(a *arrivals) {
		a.send(a.Context(), "0", 1)
		var done sync.WaitGroup
		for range 2 { // one sleeps, one queues
			done.Go(func() {
				d, err := a.waiter.Wait(a.Context(), "job:1", a.plan, 1)
				if !errors.Is(err, ratelimit.ErrUnavailable) || d.Outcome != ratelimit.Limited || d.Limit() != 1 {
					a.Errorf("Wait: %+v, %v; want limited to 1 and ErrUnavailable", d, err)
				}
			})
		}
		synctest.Wait()
		a.engine.fail(func(context.Context) error { return ratelimit.ErrUnavailable })
		done.Wait()
	})
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
				a.Errorf("%s: %v after %v, want ErrInvalid at once", name, err, time.Since(now))
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
		_, err := a.engine.Unban(a.Context(), "job:1")
		must(a, err)
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
