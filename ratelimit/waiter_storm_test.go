package ratelimit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

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
