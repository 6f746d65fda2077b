package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/priority"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/inflight"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// tiers is shed for a limit that is known: at most 24 requests run at once, of which at most 16
// are those of free users.
func tiers(next http.Handler) http.Handler {
	all, err1 := inflight.NewProcess(24, inflight.Options{Queue: 24, Wait: 50 * time.Millisecond})
	some, err2 := inflight.NewProcess(16, inflight.Options{})
	if err1 != nil || err2 != nil {
		panic("the limits are wrong")
	}
	paying := all.Middleware(next)
	others := some.Middleware(paying)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if limit.FromContext(r.Context()).Caller().Plan == paid {
			paying.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// byPriority is shed with the priorities of failsafe-go instead of shares.
func byPriority(ctx context.Context, build adaptivelimiter.Builder[any], calibration time.Duration) func(http.Handler) http.Handler {
	priorities := map[*ratelimit.Plan]priority.Priority{free: priority.Low, paid: priority.High}
	prioritizer := adaptivelimiter.NewPrioritizer()
	prioritizer.ScheduleCalibrations(ctx, calibration)
	limiter := build.BuildPrioritized(prioritizer)
	var errs *apierror.Responder
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx := priorities[limit.FromContext(r.Context()).Caller().Plan].AddTo(r.Context())
			permit, err := limiter.AcquirePermit(ctx)
			if err != nil {
				errs.Respond(w, r, overloaded)
				return
			}
			defer permit.Record()
			next.ServeHTTP(w, r)
		})
	}
}

// A service of 500 reports a second gets 150 requests of paying users a second, and after three
// seconds ten times as many of free ones. Clients give up after a second.
func TestOverload(t *testing.T) {
	type shedder = func(http.Handler) http.Handler
	for _, test := range []struct {
		name     string
		shed     func(context.Context) shedder
		free     int     // requests a second
		min, max float64 // percent of the requests of paying users that are served
	}{
		{"nothing", func(context.Context) shedder { return func(next http.Handler) http.Handler { return next } }, 1500, 0, 20},
		{"two tiers of inflight", func(context.Context) shedder { return tiers }, 1500, 98, 100},
		{"adaptive limit, shares", func(context.Context) shedder { return shed }, 1500, 98, 100},
		{"adaptive limit, priorities", func(ctx context.Context) shedder {
			return byPriority(ctx, adaptivelimiter.NewBuilder[any](), 100*time.Millisecond)
		}, 1500, 0, 100},
		{"the same, tuned", func(ctx context.Context) shedder {
			return byPriority(ctx, adaptivelimiter.NewBuilder[any]().WithQueueing(1, 4), 10*time.Millisecond)
		}, 1500, 0, 100},
		{"two tiers, no overload", func(context.Context) shedder { return tiers }, 100, 100, 100},
		{"shares, no overload", func(context.Context) shedder { return shed }, 100, 100, 100},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			handler := testcheck.Must(newHandler(test.shed(ctx)))
			users := flood(t, handler, test.free)
			paying, others := users["paying"], users["free"]
			t.Logf("| %s | %.0f%% | %v | %.0f%% |", test.name, paying.served(), paying.p99(), others.served())
			if got := paying.served(); got < test.min || got > test.max {
				t.Errorf("%s: %.1f%% of the requests of paying users are served, want %v to %v", test.name, got, test.min, test.max)
			}
			if got := others.served(); test.free == 100 && got < 100 {
				t.Errorf("%s: %.1f%% of the requests of free users are served, want all", test.name, got)
			}
		})
	}
}

// group is the users of one plan.
type group struct {
	sent  int
	times []time.Duration // of those that were served
}

func (g *group) served() float64 { return 100 * float64(len(g.times)) / float64(max(g.sent, 1)) }

func (g *group) p99() time.Duration {
	slices.Sort(g.times)
	return slices.Concat(g.times, make([]time.Duration, 1))[len(g.times)*99/100].Round(time.Millisecond)
}

// flood sends requests for ten seconds, and counts those of the last four.
func flood(t *testing.T, handler http.Handler, free int) map[string]*group {
	groups := map[string]*group{"paying": {}, "free": {}}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same load for each
	var mu sync.Mutex
	var all sync.WaitGroup
	for begun := time.Now(); time.Since(begun) < 10*time.Second; {
		rate := 150
		if time.Since(begun) > 3*time.Second {
			rate += free
		}
		time.Sleep(time.Duration(random.ExpFloat64() * float64(time.Second) / float64(rate)))
		plan := "free"
		if random.IntN(rate) < 150 {
			plan = "paying"
		}
		user, counts := fmt.Sprintf("%d@%s", random.IntN(1000), plan), time.Since(begun) > 6*time.Second
		all.Go(func() {
			sent := time.Now()
			w := report(handler, user)
			if w.Code != 200 && (w.Code != 503 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"code":"overloaded"`)) {
				t.Errorf("a refusal is %d %v %s, want 503 overloaded with Retry-After", w.Code, w.Header(), w.Body)
			}
			if counts {
				mu.Lock()
				defer mu.Unlock()
				groups[plan].sent++
				if waited := time.Since(sent); w.Code == 200 && waited < time.Second {
					groups[plan].times = append(groups[plan].times, waited)
				}
			}
		})
	}
	all.Wait()
	return groups
}

// report asks for a report, for a second at most.
func report(handler http.Handler, user string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, "GET", "/report", nil)
	r.SetBasicAuth(user, "")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// What is shed is given back to the user.
func TestNotCharged(t *testing.T) {
	handler, err := newHandler(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*apierror.Responder)(nil).Respond(w, r, overloaded) })
	})
	testcheck.NoError(t, err)
	for range 3 {
		if left := report(handler, "ann").Header().Get("X-RateLimit-Remaining"); left != "599" {
			t.Errorf("%s requests are left, want 599: this one alone is charged", left)
		}
	}
}
