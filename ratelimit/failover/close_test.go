package failover_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// Close that interrupts a probe leaves an error that no caller takes for its own.
func TestCloseDuringAProbe(t *testing.T) {
	run(t, alone, failover.Options{Budget: time.Second}, func(r *rig) {
		r.lose()
		r.shared.set(hangs)
		time.Sleep(200 * time.Millisecond)
		r.wantOpen("during the probe", true)
		began := time.Now()
		if err := r.Close(); err != nil || time.Since(began) != 0 {
			t.Errorf("Close took %v and returned %v", time.Since(began), err)
		}
		r.wantOpen("after Close", true)
		_, err := r.Take(ctx, "a", daily, 1)
		if !errors.Is(err, ratelimit.ErrUnavailable) || errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want one that wraps ErrUnavailable and not the cancelled probe", err)
		}
	})
}

// An OnChange that calls the Limiter, and waits, does not stop requests. Close waits
// for it.
func TestOnChangeCallsTheLimiter(t *testing.T) {
	var l *failover.Limiter
	var inside atomic.Int64
	opts := failover.Options{OnChange: func(error) {
		l.Take(ctx, "on change", daily, 1)
		l.Peek(ctx, "on change", daily)
		l.Reset(ctx, "on change")
		l.Ban(ctx, "on change", time.Second, "")
		l.Unban(ctx, "on change")
		l.Bans(ctx)
		l.Stats()
		inside.Add(1)
		time.Sleep(time.Minute)
		inside.Add(-1)
	}}
	run(t, withLocal, opts, func(r *rig) {
		l = r.Limiter
		r.lose()
		synctest.Wait()
		if inside.Load() != 1 {
			t.Fatal("OnChange is not under way: the test tests nothing")
		}
		began := time.Now()
		for range 100 {
			r.take("a", daily)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("requests waited %v for OnChange", waited)
		}
		r.Close()
		if inside.Load() != 0 {
			t.Error("Close did not wait for OnChange")
		}
	})
}

// Close, from many goroutines at once, among requests of a primary that comes and
// goes. Nothing runs after it, and nothing is counted twice or lost without saying so.
func TestCloseUnderLoad(t *testing.T) {
	oneProcessor(t)
	for seed := range 20 {
		run(t, withLocal, failover.Options{}, func(r *rig) {
			var calls atomic.Int64
			r.shared.set(func(ctx context.Context) error {
				if i := calls.Add(1); i%3 == 0 || i/100%2 == 1 {
					return errDown
				}
				return nil
			})
			var wg sync.WaitGroup
			for g := range 16 {
				wg.Go(func() {
					for range 50 {
						r.take(fmt.Sprint(g%5), daily)
						time.Sleep(10 * time.Millisecond)
					}
				})
			}
			time.Sleep(time.Duration(seed) * 29 * time.Millisecond)
			for range 3 {
				wg.Go(func() { r.Close() })
			}
			wg.Wait()
			r.shared.set(nil)
			open := r.Open()
			err := r.Close()
			if open != (err != nil) {
				t.Errorf("Close with an open circuit, %v: %v", open, err)
			}
			before := calls.Load()
			time.Sleep(time.Hour)
			if n := calls.Load() - before; n != 0 {
				t.Errorf("after Close the primary was called %d times", n)
			}
			var counted int64
			for i := range 5 {
				d, _ := r.shared.engine.Peek(ctx, fmt.Sprint(i), daily)
				counted += 1000 - d.States[0].Remaining
			}
			if counted > 800 || !open && counted != 800 {
				t.Errorf("the primary has counted %d of 800 requests, with an open circuit: %v", counted, open)
			}
		})
	}
}

func TestClose(t *testing.T) {
	for _, test := range []struct {
		name string
		opts failover.Options
		run  func(r *rig)
	}{
		{"nothing to do", failover.Options{}, func(r *rig) {
			r.take("a", daily)
			for range 2 {
				if err := r.Close(); err != nil {
					r.Error(err)
				}
			}
			r.take("a", daily)
		}},
		{"ends the probing", failover.Options{}, func(r *rig) {
			r.lose()
			calls := r.shared.calls.Load()
			if err := r.Close(); err == nil || !strings.Contains(err.Error(), "usage of 1 subject is not merged") {
				r.Errorf("got error %v, want one that says that a subject's usage is not merged", err)
			}
			time.Sleep(time.Hour)
			r.take("a", daily)
			if n := r.shared.calls.Load() - calls; n != 0 {
				r.Errorf("from Close on the primary was called %d times, want 0", n)
			}
		}},
		{"lets a merging come to its end", failover.Options{}, func(r *rig) {
			r.shared.set(down)
			r.take("a", daily)
			r.take("b", daily)
			r.shared.set(slow(400 * time.Millisecond))
			time.Sleep(300 * time.Millisecond)
			if err := r.Close(); err != nil {
				r.Error(err)
			}
			for _, subject := range []string{"a", "b"} {
				r.wantUsed("merged once", r.shared.engine, subject, daily, "1/24h0m0s")
			}
		}},
		{"calls OnChange no more", failover.Options{ConsecutiveFailures: 1, OnChange: func(error) { t.Error("OnChange was called") }}, func(r *rig) {
			r.Close()
			r.lose()
			time.Sleep(time.Minute)
		}},
		{"never waits for long", failover.Options{ConsecutiveFailures: 64}, func(r *rig) {
			r.shared.set(hangs)
			for i := range 5 {
				r.take(fmt.Sprint(i), daily)
			}
			began := time.Now()
			if err := r.Close(); err == nil {
				r.Error("Close says that all was merged")
			}
			if waited := time.Since(began); waited > 2*time.Second {
				r.Errorf("Close took %v, want at most two seconds", waited)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) { run(t, withLocal, test.opts, test.run) })
	}
}
