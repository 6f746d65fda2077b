package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/transport"
)

// A slow engine takes its time for requests that do not wait for their turn.
func TestPlanOfASlowEngineWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := withPlan(t, ratelimit.PerMinute(1))
		opts.MaxWait = -1
		opts.Limiter = slowEngine{opts.Limiter, 20 * time.Millisecond}
		rt := newTransport(t, newScript(), opts)
		if got := get(t, rt, url); got != "200" {
			t.Errorf("the first request: %s, want 200", got)
		}
		if got := get(t, rt, url); !strings.Contains(got, "Options.Plan until 2000-01-01T00:01:00Z") || !strings.Contains(got, "MaxWait") {
			t.Errorf("the second request: %s, want a LimitError", got)
		}
	})
}

// An engine that hangs has reached no limit.
func TestPlanOfAnEngineThatHangs(t *testing.T) {
	for _, maxWait := range []time.Duration{-1, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			opts := withPlan(t, ratelimit.PerMinute(1))
			opts.MaxWait = maxWait
			opts.Limiter = slowEngine{opts.Limiter, time.Hour}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
			s := newScript()
			_, err := newTransport(t, s, opts).RoundTrip(r)
			var limit *transport.LimitError
			if err == nil || errors.As(err, &limit) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("MaxWait %v: got error %v, want one that wraps the deadline and is not a LimitError", maxWait, err)
			}
			s.expect(t)
		})
	}
}

// Nor has one that fails, by a timeout of its own, while requests wait for their turn.
func TestPlanOfAnEngineThatFailsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := withPlan(t, ratelimit.PerMinute(1))
		opts.MaxWait = time.Hour
		engine := &failingEngine{Limiter: opts.Limiter}
		opts.Limiter = engine
		s := newScript()
		rt := newTransport(t, s, opts)
		get(t, rt, url)
		var all sync.WaitGroup
		for range 2 { // one sleeps, one queues
			all.Go(func() {
				r, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
				_, err := rt.RoundTrip(r)
				var limit *transport.LimitError
				if errors.As(err, &limit) || !errors.Is(err, ratelimit.ErrUnavailable) {
					t.Errorf("got error %v, want one that wraps ErrUnavailable and is not a LimitError", err)
				}
			})
		}
		synctest.Wait()
		engine.fails.Store(true)
		all.Wait()
	})
}

type failingEngine struct {
	ratelimit.Limiter
	fails atomic.Bool
}

func (e *failingEngine) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if e.fails.Load() {
		return ratelimit.Decision{}, fmt.Errorf("%w: %w", ratelimit.ErrUnavailable, context.DeadlineExceeded)
	}
	return e.Limiter.Take(ctx, subject, plan, cost)
}

// A slowEngine needs a time for each decision.
type slowEngine struct {
	ratelimit.Limiter
	needs time.Duration
}

func (e slowEngine) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	timer := time.NewTimer(e.needs)
	defer timer.Stop()
	select {
	case <-timer.C:
		return e.Limiter.Take(ctx, subject, plan, cost)
	case <-ctx.Done():
		return ratelimit.Decision{}, fmt.Errorf("%w: %w", ratelimit.ErrUnavailable, ctx.Err())
	}
}
