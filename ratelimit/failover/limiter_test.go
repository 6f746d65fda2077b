package failover_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

func TestConformance(t *testing.T) {
	engine := func(t *testing.T, start time.Time) (*memory.Limiter, *ratelimittest.Clock) {
		clock := ratelimittest.NewClock(start)
		l, err := memory.New(memory.Options{Now: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		return l, clock
	}
	limiter := func(t *testing.T, primary ratelimit.Limiter, mode failover.Mode, opts failover.Options) *failover.Limiter {
		l, err := failover.New(primary, mode, opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	t.Run("the primary decides", func(t *testing.T) {
		ratelimittest.Run(t, func(t *testing.T, start time.Time) ratelimittest.Engine {
			primary, clock := engine(t, start)
			// A machine that is busy is no fault.
			l := limiter(t, primary, failover.FailLocal, failover.Options{Local: newEngine(t), Budget: time.Minute})
			return ratelimittest.Engine{Limiter: l, Set: clock.Set}
		}, ratelimittest.Gaps{})
	})
	t.Run("the local engine decides", func(t *testing.T) {
		ratelimittest.Run(t, func(t *testing.T, start time.Time) ratelimittest.Engine {
			local, clock := engine(t, start)
			primary := newShared(t)
			primary.set(down)
			l := limiter(t, primary, failover.FailLocal, failover.Options{Local: local, Row: 1, FirstProbe: time.Hour})
			if _, err := l.Take(t.Context(), "somebody", daily, 1); err != nil {
				t.Fatal(err)
			}
			if l.Circuit() != failover.CircuitOpen {
				t.Fatal("the circuit is not open")
			}
			return ratelimittest.Engine{Limiter: l, Set: clock.Set}
		}, ratelimittest.Gaps{})
	})
}

func TestNewRefuses(t *testing.T) {
	primary, local := newShared(t), newEngine(t)
	for _, test := range []struct {
		name    string
		primary ratelimit.Limiter
		mode    failover.Mode
		opts    failover.Options
		want    string // what the error names
	}{
		{"no primary", nil, failover.FailOpen, failover.Options{}, "no primary"},
		{"no mode", primary, 0, failover.Options{Local: local}, "no mode"},
		{"an unknown mode", primary, 9, failover.Options{Local: local}, "no mode"},
		{"local without an engine", primary, failover.FailLocal, failover.Options{}, "Options.Local"},
		{"a budget under a millisecond", primary, failover.FailOpen, failover.Options{Budget: time.Microsecond}, "Options.Budget"},
		{"a negative budget", primary, failover.FailOpen, failover.Options{Budget: -1}, "Options.Budget"},
		{"a row over 64", primary, failover.FailOpen, failover.Options{Row: 65}, "Options.Row"},
		{"a negative share", primary, failover.FailOpen, failover.Options{Share: -1}, "Options.Share"},
		{"a probe at once", primary, failover.FailOpen, failover.Options{FirstProbe: 1}, "Options.FirstProbe"},
		{"a last probe before the first", primary, failover.FailOpen, failover.Options{FirstProbe: 2, LastProbe: 1}, "Options.FirstProbe"},
		{"a last probe after hours", primary, failover.FailOpen, failover.Options{LastProbe: 2 * time.Hour}, "Options.LastProbe"},
		{"no calls", primary, failover.FailOpen, failover.Options{Calls: -1}, "Options.Calls"},
		{"a negative journal", primary, failover.FailOpen, failover.Options{Journal: -1}, "Options.Journal"},
		{"an enormous shadow", primary, failover.FailOpen, failover.Options{Shadow: 1 << 25}, "Options.Shadow"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := failover.New(test.primary, test.mode, test.opts)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one that names %q", err, test.want)
			}
		})
	}
	if _, err := failover.New(primary, failover.FailLocal, failover.Options{Local: local, FirstProbe: time.Minute}); err != nil {
		t.Errorf("a first probe later than the default of the last one was refused: %v", err)
	}
}

func TestModes(t *testing.T) {
	for _, outage := range []struct {
		name  string
		begin func(*rig)
	}{
		{"a call failed", func(r *rig) { r.shared.set(down) }},
		{"the circuit is open", (*rig).lose},
	} {
		t.Run("local, "+outage.name, func(t *testing.T) {
			run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
				outage.begin(r)
				p := ratelimit.MustPlan("two", ratelimit.Penalty{}, ratelimit.PerDay(2))
				for i, want := range []ratelimit.Outcome{ratelimit.Allowed, ratelimit.Allowed, ratelimit.Limited} {
					if d := r.take("a", p); d.Outcome != want || d.Plan != p {
						r.Errorf("request %d under %v: got %v under %v, want %v", i+1, p, d.Outcome, d.Plan, want)
					}
				}
			})
		})
		t.Run("open, "+outage.name, func(t *testing.T) {
			run(t, failover.FailOpen, failover.Options{}, func(r *rig) {
				outage.begin(r)
				p := ratelimit.MustPlan("two", ratelimit.DefaultPenalty(), ratelimit.PerMinute(2), ratelimit.PerDay(5))
				now := time.Now()
				want := ratelimit.Decision{
					Outcome: ratelimit.Allowed, Plan: p, Cost: 2, Time: now.UnixNano(), StrikesLeft: 10,
					States: [ratelimit.MaxQuotas]ratelimit.State{
						{Remaining: 2, Reset: now.Truncate(time.Minute).Add(time.Minute).Unix()},
						{Remaining: 5, Reset: now.Truncate(24 * time.Hour).Add(24 * time.Hour).Unix()},
					},
				}
				for range 9 {
					got := r.takeN("a", p, 2)
					if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b })); diff != "" {
						r.Fatalf("everybody is admitted and counted nowhere (-want +got):\n%s", diff)
					}
				}
			})
		})
		t.Run("closed, "+outage.name, func(t *testing.T) {
			run(t, failover.FailClosed, failover.Options{}, func(r *rig) {
				outage.begin(r)
				_, err := r.Take(ctx, "a", daily, 1)
				if !errors.Is(err, ratelimit.ErrUnavailable) || !errors.Is(err, errDown) {
					r.Errorf("got error %v, want one that wraps ErrUnavailable and the cause", err)
				}
			})
		})
	}
	for _, mode := range []failover.Mode{failover.FailLocal, failover.FailOpen, failover.FailClosed} {
		t.Run("a wrong call, mode "+mode.String(), func(t *testing.T) {
			run(t, mode, failover.Options{}, func(r *rig) {
				r.lose()
				for _, cost := range []int64{0, 1001} {
					if _, err := r.Take(ctx, "a", daily, cost); !errors.Is(err, ratelimit.ErrInvalid) {
						r.Errorf("cost %d of 1000 while the circuit is open: got error %v, want one that wraps ErrInvalid", cost, err)
					}
				}
				if _, err := r.Take(ctx, "a", nil, 1); !errors.Is(err, ratelimit.ErrInvalid) {
					r.Errorf("no plan while the circuit is open: got error %v, want one that wraps ErrInvalid", err)
				}
			})
		})
	}
}

func TestBudget(t *testing.T) {
	for _, mode := range []failover.Mode{failover.FailLocal, failover.FailOpen, failover.FailClosed} {
		for _, test := range []struct {
			name  string
			fault func(ctx context.Context, release <-chan struct{}) error
		}{
			{"ignores its context", func(_ context.Context, release <-chan struct{}) error { <-release; return nil }},
			{"obeys its context", func(ctx context.Context, _ <-chan struct{}) error { <-ctx.Done(); return ctx.Err() }},
		} {
			t.Run(mode.String()+", the primary hangs and "+test.name, func(t *testing.T) {
				run(t, mode, failover.Options{Budget: 20 * time.Millisecond}, func(r *rig) {
					release := make(chan struct{})
					defer close(release)
					r.shared.set(func(ctx context.Context) error { return test.fault(ctx, release) })
					for range 3 {
						began := time.Now()
						_, err := r.Take(ctx, "a", daily, 1)
						if waited := time.Since(began); waited != 20*time.Millisecond {
							r.Errorf("waited %v, want the budget of 20ms", waited)
						}
						if failed := err != nil; failed != (mode == failover.FailClosed) {
							r.Errorf("got error %v", err)
						}
					}
					if s := r.Stats(); s.Timeouts != 3 || s.Failures != 3 || s.Fallbacks != 3 {
						r.Errorf("three timeouts: got %+v", s)
					}
				})
			})
		}
	}
}

func TestCallsAreBounded(t *testing.T) {
	run(t, failover.FailOpen, failover.Options{Calls: 3, Row: 64, Share: 64}, func(r *rig) {
		release := make(chan struct{})
		r.shared.set(hangs(release))
		before := runtime.NumGoroutine()
		began := time.Now()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { r.take("a", daily) })
		}
		wg.Wait()
		if waited := time.Since(began); waited != 50*time.Millisecond {
			r.Errorf("twenty callers waited %v, want the budget of 50ms: a wait for a place is a part of it", waited)
		}
		synctest.Wait()
		if calls := r.shared.calls.Load(); calls != 3 {
			r.Errorf("%d calls are under way, want at most 3", calls)
		}
		if n := runtime.NumGoroutine() - before; n > 3 {
			r.Errorf("%d goroutines are left, want at most one for each call", n)
		}
		close(release)
		synctest.Wait()
		r.shared.set(nil)
		if r.take("a", daily); r.Stats().Failures != 20 {
			r.Errorf("the places are not free again: %+v", r.Stats())
		}
	})
}

func TestContextOfTheCall(t *testing.T) {
	type key struct{}
	run(t, failover.FailOpen, failover.Options{}, func(r *rig) {
		var kept, derived context.Context
		var deadline time.Time
		var cancels []context.CancelFunc
		defer func() {
			for _, cancel := range cancels {
				cancel()
			}
		}()
		r.shared.set(func(ctx context.Context) error {
			kept = ctx
			if ctx.Value(key{}) != "value" {
				r.Error("the caller's values are missing")
			}
			if ctx.Err() != nil {
				r.Errorf("the context has ended before the call did: %v", ctx.Err())
			}
			deadline, _ = ctx.Deadline()
			var cancel context.CancelFunc
			derived, cancel = context.WithCancel(ctx)
			cancels = append(cancels, cancel) // later: the parent is to end it first
			return nil
		})
		parent := context.WithValue(ctx, key{}, "value")
		if _, err := r.Take(parent, "a", daily, 1); err != nil {
			r.Fatal(err)
		}
		if want := time.Now().Add(50 * time.Millisecond); !deadline.Equal(want) {
			r.Errorf("the deadline is %v, want %v, the end of the budget", deadline, want)
		}
		synctest.Wait()
		if kept.Err() != context.Canceled || derived.Err() != context.Canceled {
			r.Errorf("after the call its context has the error %v, and one derived from it %v, want both canceled", kept.Err(), derived.Err())
		}
		<-kept.Done()

		sooner, cancel := context.WithTimeout(parent, time.Millisecond)
		defer cancel()
		if _, err := r.Take(sooner, "a", daily, 1); err != nil {
			r.Fatal(err)
		}
		if want := time.Now().Add(time.Millisecond); !deadline.Equal(want) {
			r.Errorf("the deadline is %v, want %v, the caller's", deadline, want)
		}
	})
}

func TestNoFailureOfThePrimary(t *testing.T) {
	for _, test := range []struct {
		name string
		take func(r *rig) error
		want error
	}{
		{"the caller had left before", func(r *rig) error {
			gone, cancel := context.WithCancel(ctx)
			cancel()
			_, err := r.Take(gone, "a", daily, 1)
			return err
		}, context.Canceled},
		{"the caller leaves", func(r *rig) error {
			leaving, cancel := context.WithCancel(ctx)
			defer cancel()
			r.shared.set(slow(40 * time.Millisecond))
			time.AfterFunc(time.Millisecond, cancel)
			_, err := r.Take(leaving, "a", daily, 1)
			return err
		}, context.Canceled},
		{"the caller's deadline comes before the budget's", func(r *rig) error {
			leaving, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			r.shared.set(slow(40 * time.Millisecond))
			_, err := r.Take(leaving, "a", daily, 1)
			return err
		}, context.DeadlineExceeded},
		{"the primary fails since the caller leaves", func(r *rig) error {
			leaving, cancel := context.WithCancel(ctx)
			r.shared.set(func(ctx context.Context) error { cancel(); return errDown })
			_, err := r.Take(leaving, "a", daily, 1)
			return err
		}, nil},
		{"the primary finds the call invalid", func(r *rig) error {
			r.shared.set(func(context.Context) error { return ratelimit.ErrInvalid })
			_, err := r.Take(ctx, "a", daily, 1)
			return err
		}, ratelimit.ErrInvalid},
		{"a command fails", func(r *rig) error {
			r.shared.set(down)
			return r.Reset(ctx, "a")
		}, errDown},
	} {
		t.Run(test.name, func(t *testing.T) {
			run(t, failover.FailLocal, failover.Options{Row: 1}, func(r *rig) {
				for range 3 {
					if err := test.take(r); err == nil || test.want != nil && !errors.Is(err, test.want) {
						r.Fatalf("got error %v, want %v", err, test.want)
					}
				}
				if s := r.Stats(); r.Circuit() != failover.CircuitClosed || s.Failures != 0 || s.Fallbacks != 0 {
					r.Errorf("counts as a failure of the primary: %v, %+v", r.Circuit(), s)
				}
			})
		})
	}
}

func TestCallerIsGone(t *testing.T) {
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := r.Take(gone, "a", daily, 1); !errors.Is(err, context.Canceled) {
			r.Errorf("got error %v", err)
		}
		synctest.Wait()
		if n := r.shared.calls.Load(); n != 0 {
			r.Errorf("the primary was called %d times for a caller who was gone before, want 0", n)
		}
	})
}

func TestPanic(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault func(context.Context) error
		want  string
	}{
		{"the primary panics", func(context.Context) error { panic("index out of range") }, "index out of range"},
		{"the primary ends its goroutine", func(context.Context) error { runtime.Goexit(); return nil }, "ended its goroutine"},
	} {
		t.Run(test.name, func(t *testing.T) {
			run(t, failover.FailClosed, failover.Options{}, func(r *rig) {
				r.shared.set(test.fault)
				_, err := r.Take(ctx, "a", daily, 1)
				if !errors.Is(err, ratelimit.ErrUnavailable) || !strings.Contains(err.Error(), test.want) {
					r.Errorf("got error %v, want one that wraps ErrUnavailable and says %q", err, test.want)
				}
				r.shared.set(nil)
				r.take("a", daily)
			})
		})
	}
}

// A primary that comes and goes under load from 64 goroutines: nobody waits
// longer than the budget, and in the end the primary has counted every request
// that was admitted, once.
func TestNothingLostNothingTwice(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault func(i int64) error
	}{
		{"fails half of the time", func(i int64) error {
			if i%2 == 0 {
				return errDown
			}
			return nil
		}},
		{"fails every tenth time", func(i int64) error {
			if i%10 == 0 {
				return errDown
			}
			return nil
		}},
		{"comes and goes", func(int64) error {
			if time.Now().Unix()%3 == 0 {
				return errDown
			}
			return nil
		}},
		{"answers late half of the time", func(i int64) error {
			if i%2 == 0 {
				time.Sleep(70 * time.Millisecond)
			}
			return nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
				var calls, admitted atomic.Int64
				r.shared.set(func(context.Context) error { return test.fault(calls.Add(1)) })
				plan := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerDay(1_000_000))
				var wg sync.WaitGroup
				for g := range 64 {
					wg.Go(func() {
						for i := range 200 {
							began := time.Now()
							d, err := r.Take(ctx, string(rune('a'+(g+i)%7)), plan, 1)
							if waited := time.Since(began); waited > 50*time.Millisecond {
								t.Errorf("waited %v, longer than the budget of 50ms", waited)
							}
							if err != nil {
								t.Errorf("Take: %v", err)
							}
							if d.Allowed() {
								admitted.Add(1)
							}
							time.Sleep(50 * time.Millisecond)
						}
					})
				}
				wg.Wait()
				r.regain()
				var counted int64
				for s := range 7 {
					d, err := r.shared.engine.Peek(ctx, string(rune('a'+s)), plan)
					if err != nil {
						t.Fatal(err)
					}
					counted += 1_000_000 - d.States[0].Remaining
				}
				if counted != admitted.Load() || counted != 64*200 {
					t.Errorf("of %d requests %d were admitted, and %d counted", 64*200, admitted.Load(), counted)
				}
				if s := r.Stats(); s.Fallbacks == 0 || s.Merged == 0 || s.Lost != 0 {
					t.Errorf("the test has tested nothing: %+v", s)
				}
			})
		})
	}
}
