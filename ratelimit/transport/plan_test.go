package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/transport"
)

func newEngine(t *testing.T) *memory.Limiter {
	t.Helper()
	engine, err := memory.New(memory.Options{})
	must(t, err)
	return engine
}

func planOf(quotas ...ratelimit.Quota) *ratelimit.Plan {
	return ratelimit.MustPlan("client", ratelimit.Penalty{}, quotas...)
}

// withPlan are options with an engine of their own.
func withPlan(t *testing.T, quotas ...ratelimit.Quota) transport.Options {
	return transport.Options{Plan: planOf(quotas...), Limiter: newEngine(t)}
}

func TestPlanHoldsBeforeARequestIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		rt := newTransport(t, s, withPlan(t, ratelimit.PerSecond(2)))
		for range 5 {
			get(t, rt, url)
		}
		get(t, rt, "http://other.example.com/") // has a plan of its own
		s.expect(t, "0s", "0s", "1s", "1s", "2s", "2s")
	})
}

func TestPlanFailsFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		rt := newTransport(t, s, withPlan(t, ratelimit.PerDay(1)))
		get(t, rt, url)
		r, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		_, err := rt.RoundTrip(r)
		if limit := limitOf(t, err); limit.Status != 0 || limit.RetryAfter() != 24*time.Hour || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %+v, want a limit of the plan for 24h", limit)
		}
		const want = "transport: api.example.com is limited by Options.Plan until 2000-01-02T00:00:00Z: the request would wait longer than Options.MaxWait (2m0s)"
		if err.Error() != want {
			t.Errorf("the error is %q, want %q", err, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := rt.RoundTrip(r.WithContext(ctx)); !errors.Is(err, context.DeadlineExceeded) || limitOf(t, err) == nil {
			t.Errorf("with a deadline the error is %v, want a LimitError that wraps DeadlineExceeded", err)
		}
		s.expect(t, "0s")
	})
}

// An engine with a clock that is behind counts windows that seem to have ended.
func TestPlanOfAnEngineWithAnotherClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, err := memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(-time.Hour) }})
		must(t, err)
		s := newScript("429 Retry-After: 17")
		rt := newTransport(t, s, transport.Options{Plan: planOf(ratelimit.PerMinute(2)), Limiter: engine})
		for range 3 {
			get(t, rt, url)
		}
		s.expect(t, "0s", "17s", "1m0s", "1m0s")
	})
}

func TestPlanWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := withPlan(t, ratelimit.PerMinute(1))
		opts.MaxWait = -1
		rt := newTransport(t, newScript(), opts)
		if got := get(t, rt, url); got != "200" {
			t.Errorf("the first request: %s, want 200", got)
		}
		if got := get(t, rt, url); !strings.Contains(got, "Options.Plan until 2000-01-01T00:01:00Z") {
			t.Errorf("the second request: %s, want a LimitError", got)
		}
	})
}

// The waits for the plan and for the server count together.
func TestPlanCountsForMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("200", "429 Retry-After: 30")
		opts := withPlan(t, ratelimit.PerMinute(1))
		opts.MaxWait = 80 * time.Second
		rt := newTransport(t, s, opts)
		get(t, rt, url)
		if got := get(t, rt, url); !strings.Contains(got, "MaxWait (1m20s)") {
			t.Errorf("the second request: %s, want a LimitError after 60s for the plan and 30s for the server", got)
		}
		s.expect(t, "0s", "1m0s")
	})
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 70")
		opts := withPlan(t, ratelimit.PerMinute(1))
		opts.MaxWait = 80 * time.Second
		time.AfterFunc(65*time.Second, func() { // another process
			_, _ = opts.Limiter.Take(t.Context(), "call:api.example.com", opts.Plan, 1)
		})
		if got := get(t, newTransport(t, s, opts), url); !strings.Contains(got, "MaxWait (1m20s)") {
			t.Errorf("got %s, want a LimitError after 70s for the server and 50s for the plan", got)
		}
		s.expect(t, "0s")
	})
}

// usage returns what is used of the plan's quotas.
func usage(t *testing.T, engine *memory.Limiter, plan *ratelimit.Plan) (used [2]int64) {
	t.Helper()
	d, err := engine.Peek(t.Context(), "call:api.example.com", plan)
	must(t, err)
	for i, q := range plan.Quotas() {
		used[i] = q.Limit - d.States[i].Remaining
	}
	return used
}

// A request that has its turn when a pause begins keeps it until the window ends. Then
// it gives its unit back, and takes another turn.
func TestPlanInAPause(t *testing.T) {
	for name, test := range map[string]struct {
		pause   string        // in seconds, from 1s on
		at      time.Duration // a moment after the second request arrived, or failed
		arrived []string
		used    [2]int64 // of the minute and of the hour, at that moment
		keeps   bool     // the limiter cannot give units back
	}{
		"within the window":    {"17", 20 * time.Second, []string{"1s", "19s"}, [2]int64{2, 2}, false},
		"longer than a window": {"70", 73 * time.Second, []string{"1s", "1m12s"}, [2]int64{1, 2}, false},
		"without refunds":      {"70", 73 * time.Second, []string{"1s", "1m12s"}, [2]int64{1, 3}, true},
		"too long to wait":     {"3000", 3 * time.Second, []string{"1s"}, [2]int64{1, 1}, false},
	} {
		inBubble(t, name, func(t *testing.T) {
			engine, plan := newEngine(t), planOf(ratelimit.PerMinute(10), ratelimit.PerHour(100))
			slow := &slowLimiter{Limiter: engine}
			limiter := ratelimit.Limiter(slow)
			if test.keeps {
				limiter = struct{ ratelimit.Limiter }{slow} // is not an Adjuster
			}
			s := newScript("200 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: " + test.pause)
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				time.Sleep(time.Second)
				return s.RoundTrip(r)
			})
			rt := newTransport(t, base, transport.Options{Plan: plan, Limiter: limiter})
			go get(t, rt, url)
			synctest.Wait()
			slow.delay.Store(int64(1500 * time.Millisecond))
			go get(t, rt, url) // takes its turn while the answer to the first arrives
			synctest.Wait()
			slow.delay.Store(0)
			time.Sleep(test.at)
			if got := usage(t, engine, plan); got != test.used {
				t.Errorf("used of the minute and of the hour: %v, want %v", got, test.used)
			}
			s.expect(t, test.arrived...)
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// slowLimiter decides after a delay.
type slowLimiter struct {
	*memory.Limiter
	delay atomic.Int64
}

func (s *slowLimiter) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	time.Sleep(time.Duration(s.delay.Load()))
	return s.Limiter.Take(ctx, subject, plan, cost)
}

// down is an engine that fails.
type down struct{}

func (down) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, ratelimit.ErrUnavailable
}

func TestPlanWithoutEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		rt := newTransport(t, s, transport.Options{Plan: planOf(ratelimit.PerDay(1)), Limiter: down{}})
		r, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		if _, err := rt.RoundTrip(r); !errors.Is(err, ratelimit.ErrUnavailable) {
			t.Errorf("the error is %v, want ErrUnavailable", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := rt.RoundTrip(r.WithContext(ctx)); !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v, want that of the context", err)
		}
		s.expect(t)
	})
}

// handlerTransport calls a handler without a network, with a round trip of 40 ms.
type handlerTransport struct{ http.Handler }

func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(20 * time.Millisecond)
	w := httptest.NewRecorder()
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	h.ServeHTTP(w, r)
	time.Sleep(20 * time.Millisecond)
	return w.Result(), nil
}

// Many goroutines behind a Gatehouse: all are served in the end, few are refused, and
// the client is not banned although the penalty is strict.
func TestAgainstGatehouse(t *testing.T) {
	for name, opts := range map[string]transport.Options{"headers": {}, "plan": {Plan: planOf(ratelimit.PerMinute(60))}} {
		inBubble(t, name, func(t *testing.T) {
			var refused, banned atomic.Int64
			plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))
			limited, err := limit.New(newEngine(t), func(*http.Request) (ratelimit.Caller, error) {
				return ratelimit.Caller{Subject: "owner:17", Plan: plan}, nil
			}, limit.Options{Observe: func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, _ error) {
				switch d.Outcome {
				case ratelimit.Limited:
					refused.Add(1)
				case ratelimit.Banned:
					banned.Add(1)
				}
			}})
			must(t, err)
			if opts.Plan != nil {
				opts.Limiter = newEngine(t)
			}
			opts.Base, opts.MaxWait = handlerTransport{limited(http.NotFoundHandler())}, time.Hour
			rt, err := transport.New(opts)
			must(t, err)
			begin := time.Now()
			var done sync.WaitGroup
			for range 600 {
				done.Go(func() {
					if got := get(t, rt, url); got != "404 404 page not found" {
						t.Errorf("a request ends with %q, want the handler's answer", got)
					}
				})
			}
			done.Wait()
			if n := banned.Load(); n > 0 {
				t.Errorf("the client was banned: %d requests", n)
			}
			// Without a plan each window can begin with a few requests too many.
			if n := refused.Load(); n > 600 || opts.Plan != nil && n > 0 {
				t.Errorf("%d requests were refused", n)
			}
			if took := time.Since(begin); took < 9*time.Minute || took > 11*time.Minute {
				t.Errorf("600 requests at 60 a minute took %v, want 9 to 11 minutes", took)
			}
			t.Logf("%d requests were refused, and all were served in %v", refused.Load(), time.Since(begin))
		})
	}
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
