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

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/transport"
)

func newEngine(t *testing.T) *memory.Limiter {
	t.Helper()
	engine := testcheck.Must(memory.New(memory.Options{}))
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
	for maxWait, text := range map[time.Duration]string{0: "2m0s", -1: "0s"} {
		synctest.Test(t, func(t *testing.T) {
			s := newScript()
			opts := withPlan(t, ratelimit.PerDay(1))
			opts.MaxWait = maxWait
			rt := newTransport(t, s, opts)
			get(t, rt, url)
			r, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
			_, err := rt.RoundTrip(r)
			if limit := limitOf(t, err); limit.Status != 0 || time.Until(limit.Until) != 24*time.Hour || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %+v, want a limit of the plan for 24h", limit)
			}
			want := "transport: api.example.com is limited by Options.Plan until 2000-01-02T00:00:00Z: the request would wait longer than Options.MaxWait (" + text + ")"
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
}

// An engine with a clock that is behind counts windows that seem to have ended.
func TestPlanOfAnEngineWithAnotherClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := testcheck.Must(memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(-time.Hour) }}))
		s := newScript("429 Retry-After: 17")
		rt := newTransport(t, s, transport.Options{Plan: planOf(ratelimit.PerMinute(2)), Limiter: engine})
		for range 3 {
			get(t, rt, url)
		}
		s.expect(t, "0s", "17s", "1m0s", "1m0s")
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
	d := testcheck.Must(engine.Peek(t.Context(), "call:api.example.com", plan))
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
		gone    bool     // the second request is cancelled in the pause
	}{
		"within the window":    {pause: "17", at: 20 * time.Second, arrived: []string{"1s", "19s"}, used: [2]int64{2, 2}},
		"longer than a window": {pause: "70", at: 73 * time.Second, arrived: []string{"1s", "1m2s"}, used: [2]int64{1, 2}},
		"without refunds":      {pause: "70", at: 73 * time.Second, arrived: []string{"1s", "1m2s"}, used: [2]int64{1, 3}, keeps: true},
		"too long to wait":     {pause: "3000", at: 3 * time.Second, arrived: []string{"1s"}, used: [2]int64{1, 1}},
		"cancelled":            {pause: "17", at: 20 * time.Second, arrived: []string{"1s"}, used: [2]int64{1, 1}, gone: true},
	} {
		inBubble(t, name, func(t *testing.T) {
			engine, plan := newEngine(t), planOf(ratelimit.PerMinute(10), ratelimit.PerHour(100))
			var delay atomic.Int64
			slow := hooked{engine, func(context.Context) error { time.Sleep(time.Duration(delay.Load())); return nil }}
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
			delay.Store(int64(1500 * time.Millisecond))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go send(rt, testcheck.Must(http.NewRequestWithContext(ctx, "GET", url, nil))) // takes its turn while the answer to the first arrives
			synctest.Wait()
			if test.gone {
				time.AfterFunc(10*time.Second, cancel)
			}
			delay.Store(0)
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

// hooked is an engine that calls a function first.
type hooked struct {
	*memory.Limiter
	before func(context.Context) error
}

func (h hooked) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if err := h.before(ctx); err != nil {
		return ratelimit.Decision{}, err
	}
	return h.Limiter.Take(ctx, subject, plan, cost)
}

// Adjust fails if ctx has ended, as it does in an engine that other processes share.
func (h hooked) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return h.Limiter.Adjust(ctx, subject, d, units, id)
}

// An engine that fails or hangs has reached no limit.
func TestPlanOfAnEngineThatFails(t *testing.T) {
	down := func(context.Context) error { return ratelimit.ErrUnavailable }
	hangs := func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("%w: %w", ratelimit.ErrUnavailable, ctx.Err())
	}
	for name, test := range map[string]struct {
		before  func(context.Context) error
		maxWait time.Duration
		timeout time.Duration
		want    error
	}{
		"down":                       {down, 0, time.Minute, ratelimit.ErrUnavailable},
		"down, no time left":         {down, 0, -1, context.DeadlineExceeded},
		"hangs":                      {hangs, 10 * time.Second, time.Minute, context.DeadlineExceeded},
		"hangs, and no time to wait": {hangs, -1, time.Minute, context.DeadlineExceeded},
	} {
		inBubble(t, name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
			defer cancel()
			s := newScript()
			rt := newTransport(t, s, transport.Options{Plan: planOf(ratelimit.PerMinute(1)), Limiter: hooked{newEngine(t), test.before}, MaxWait: test.maxWait})
			r, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
			_, err := rt.RoundTrip(r)
			if errors.As(err, new(*transport.LimitError)) || !errors.Is(err, test.want) {
				t.Errorf("the error is %v, want one that wraps %v and is not a LimitError", err, test.want)
			}
			s.expect(t)
		})
	}
}

// Nor has one that fails, by a timeout of its own, while requests wait for their turn.
func TestPlanOfAnEngineThatFailsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails atomic.Bool
		limiter := hooked{newEngine(t), func(context.Context) error {
			if fails.Load() {
				return fmt.Errorf("%w: %w", ratelimit.ErrUnavailable, context.DeadlineExceeded)
			}
			return nil
		}}
		rt := newTransport(t, newScript(), transport.Options{Plan: planOf(ratelimit.PerMinute(1)), Limiter: limiter, MaxWait: time.Hour})
		get(t, rt, url)
		var all sync.WaitGroup
		for range 2 { // one sleeps, one queues
			all.Go(func() {
				r, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
				_, err := rt.RoundTrip(r)
				if errors.As(err, new(*transport.LimitError)) || !errors.Is(err, ratelimit.ErrUnavailable) {
					t.Errorf("got error %v, want one that wraps ErrUnavailable and is not a LimitError", err)
				}
			})
		}
		synctest.Wait()
		fails.Store(true)
		all.Wait()
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

// gatehouse is a service that limits one caller.
func gatehouse(t *testing.T, plan *ratelimit.Plan, opts limit.Options, serve http.HandlerFunc) (handlerTransport, *memory.Limiter) {
	t.Helper()
	engine := newEngine(t)
	limited, err := limit.New(engine, func(*http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "owner:17", Plan: plan}, nil
	}, opts)
	must(t, err)
	return handlerTransport{limited(serve)}, engine
}

// Many goroutines behind a Gatehouse: all are served in the end, few are refused, and
// the client is not banned although the penalty is strict.
func TestAgainstGatehouse(t *testing.T) {
	for name, opts := range map[string]transport.Options{"headers": {}, "plan": {Plan: planOf(ratelimit.PerMinute(60))}} {
		inBubble(t, name, func(t *testing.T) {
			var refused, banned atomic.Int64
			plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))
			service, _ := gatehouse(t, plan, limit.Options{Observe: func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, _ error) {
				switch d.Outcome {
				case ratelimit.Limited:
					refused.Add(1)
				case ratelimit.Banned:
					banned.Add(1)
				}
			}}, http.NotFound)
			if opts.Plan != nil {
				opts.Limiter = newEngine(t)
			}
			opts.Base, opts.MaxWait = service, time.Hour
			rt := testcheck.Must(transport.New(opts))
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

// A service that writes errors of its own bans a client, which does not wait for the end.
func TestBanOfGatehouse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := &apierror.Responder{Write: func(w http.ResponseWriter, _ *http.Request, e *apierror.Error) { http.Error(w, "No.", e.Status) }}
		service, engine := gatehouse(t, planOf(ratelimit.PerDay(10)), limit.Options{Errors: own}, http.NotFound)
		must(t, engine.Ban(t.Context(), "owner:17", time.Minute, ""))
		if got := get(t, newTransport(t, service, transport.Options{}), url); !strings.Contains(got, "has banned this client until 2000-01-01T00:01:00Z (429)") {
			t.Errorf("the caller gets %q, want a LimitError of the ban immediately", got)
		}
	})
}

// A client whose requests reserve a whole day, and cost nothing when they are settled, does
// not stop for the rest of it.
func TestReservationsFillTheWindow(t *testing.T) {
	for _, maxWait := range []time.Duration{-1, 48 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			opts := limit.Options{Settle: true, Cost: func(*http.Request) int64 { return 1000 }}
			service, _ := gatehouse(t, planOf(ratelimit.PerDay(5000)), opts, func(_ http.ResponseWriter, r *http.Request) {
				time.Sleep(time.Second)
				must(t, limit.FromContext(r.Context()).Settle(r.Context(), 0))
			})
			rt, began := newTransport(t, service, transport.Options{MaxWait: maxWait}), time.Now()
			var done sync.WaitGroup
			for range 5 {
				done.Go(func() { get(t, rt, url) })
			}
			done.Wait()
			if maxWait < 0 {
				time.Sleep(time.Minute)
			}
			if got := get(t, rt, url); got != "200" || time.Since(began) >= 2*time.Minute {
				t.Errorf("MaxWait %v: the next request gets %q after %v, want 200 after a minute", maxWait, got, time.Since(began))
			}
		})
	}
}
