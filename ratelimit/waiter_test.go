package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
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
	engine := testcheck.Must(memory.New(memory.Options{}))
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

// expect compares the ends so far. Those of one instant come in any order.
func (a *arrivals) expect(want ...string) {
	a.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Sort(a.ends)
	slices.Sort(want)
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
			a.Errorf("another subject: %v, %v; want allowed immediately", d.Outcome, err)
		}
		a.expect("0 admitted at 0s")
		time.Sleep(time.Second)
	})
}

// A storm is many requests for one subject that arrive one after the other, with costs,
// deadlines and cancellations at random, while units are given back and bans begin and end
// by hand.
type storm struct {
	*testing.T
	waiter *ratelimit.Waiter
	engine *counting
	plan   *ratelimit.Plan
	r      *rand.Rand

	mu       sync.Mutex
	admitted []int // in the order of their admission
	units    map[int64]int64
}

type numberKey struct{}

// Take implements ratelimit.Limiter, and notes which request it admits.
func (s *storm) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	d, err := s.engine.Take(ctx, subject, plan, cost)
	if err == nil && d.Allowed() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.admitted = append(s.admitted, ctx.Value(numberKey{}).(int))
		s.units[time.Now().Unix()] += cost
	}
	return d, err
}

func (s *storm) request(i int) {
	ctx, cancel := context.WithCancel(context.WithValue(s.Context(), numberKey{}, i))
	cost, deadline := 1+s.r.Int64N(3), time.Time{}
	switch s.r.IntN(4) {
	case 0:
		deadline = time.Now().Add(time.Duration(s.r.Int64N(int64(2 * time.Minute))))
		ctx, cancel = context.WithDeadline(ctx, deadline)
	case 1:
		time.AfterFunc(time.Duration(s.r.Int64N(int64(2*time.Minute))), cancel)
	}
	go func() {
		defer cancel()
		d, err := s.waiter.Wait(ctx, "a", s.plan, cost)
		now := time.Now()
		switch {
		case err == nil && !d.Allowed():
			s.Errorf("request %d: %v without an error", i, d.Outcome)
		case err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled):
			s.Errorf("request %d: %v", i, err)
		}
		if !deadline.IsZero() && now.After(deadline) {
			s.Errorf("request %d ended %v after its deadline", i, now.Sub(deadline))
		}
	}()
	synctest.Wait() // it waits, or has ended
}

func TestWaitInAStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newCounting(t)
		const limit = 5
		s := &storm{
			T: t, engine: engine, r: rand.New(rand.NewPCG(3, 4)),
			plan: ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerSecond(limit)), units: map[int64]int64{},
		}
		s.waiter = ratelimit.NewWaiter(s)
		const requests = 3000
		for i := range requests {
			s.request(i)
			if s.r.IntN(4) == 0 {
				time.Sleep(time.Duration(s.r.Int64N(int64(time.Second))))
			}
			switch s.r.IntN(300) {
			case 0:
				if err := engine.Ban(t.Context(), "a", 2*time.Second, ""); err != nil {
					t.Error(err)
				}
			case 1:
				if _, err := engine.Unban(t.Context(), "a"); err != nil {
					t.Error(err)
				}
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		for second, units := range s.units {
			if units > limit {
				t.Errorf("in second %d requests of %d units are admitted, the limit is %d", second, units, limit)
			}
		}
		for k := 1; k < len(s.admitted); k++ {
			if s.admitted[k] < s.admitted[k-1] {
				t.Errorf("request %d is admitted after request %d", s.admitted[k], s.admitted[k-1])
			}
		}
		if len(s.admitted) < requests/4 {
			t.Errorf("%d of %d requests are admitted, want at least a quarter", len(s.admitted), requests)
		}
		// Each request calls the engine when it arrives or becomes the first, and once
		// after each denial. A ban adds a call or two.
		if calls := engine.calls.Load(); calls > 3*requests {
			t.Errorf("%d requests called the engine %d times", requests, calls)
		}
		if n := ratelimit.Queues(s.waiter); n != 0 {
			t.Errorf("%d queues are kept", n)
		}
	})
}
