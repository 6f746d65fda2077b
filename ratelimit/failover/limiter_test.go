package failover_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Without a local engine, the error says why the primary did not do it.
func TestNoFallback(t *testing.T) {
	for name, begin := range map[string]func(*rig){
		"a call failed":       func(r *rig) { r.shared.set(down) },
		"the circuit is open": (*rig).lose,
	} {
		t.Run(name, func(t *testing.T) {
			run(t, alone, failover.Options{}, func(r *rig) {
				d := r.takeN("a", daily, 10)
				calls := r.commands()
				calls["Take"] = func() error { _, err := r.Take(ctx, "b", daily, 1); return err }
				calls["Peek"] = func() error { _, err := r.Peek(ctx, "b", daily); return err }
				calls["Adjust"] = func() error { return r.Adjust(ctx, "a", &d, 17, "") }
				begin(r)
				for name, call := range calls {
					if err := call(); !errors.Is(err, ratelimit.ErrUnavailable) || !errors.Is(err, errDown) || errors.Is(err, failover.ErrLocalOnly) {
						r.Errorf("%s: got error %v, want one that wraps ErrUnavailable and the cause, and not ErrLocalOnly", name, err)
					}
				}
				r.wantUsed("not adjusted", r.shared.engine, "a", daily, "10/24h0m0s")
				r.regain()
				for name, call := range calls {
					if err := call(); err != nil {
						r.Errorf("%s after the outage: %v", name, err)
					}
				}
				must(r, r.Ban(ctx, "c", time.Hour, ""))
				if unbanned, err := r.Unban(ctx, "c"); !unbanned || err != nil {
					r.Errorf("Unban of a banned subject: got %v, %v", unbanned, err)
				}
			})
		})
	}
}

func TestBudget(t *testing.T) {
	for _, mode := range []fallback{withLocal, alone} {
		t.Run(mode.String(), func(t *testing.T) {
			run(t, mode, failover.Options{Budget: 20 * time.Millisecond}, func(r *rig) {
				r.shared.set(hangs)
				for range 3 {
					began := time.Now()
					_, err := r.Take(ctx, "a", daily, 1)
					if waited := time.Since(began); waited != 20*time.Millisecond {
						r.Errorf("waited %v, want the budget of 20ms", waited)
					}
					if failed := err != nil; failed != (mode == alone) {
						r.Errorf("got error %v", err)
					}
				}
				r.shared.set(func(context.Context) error { return context.DeadlineExceeded }) // of its own, before the end of the budget
				if _, err := r.Take(ctx, "a", daily, 1); mode == alone && !errors.Is(err, ratelimit.ErrUnavailable) {
					r.Errorf("got error %v, want one that wraps ErrUnavailable", err)
				}
				if s := r.Stats(); s.Timeouts != 3 || s.Failures != 4 || s.Fallbacks != 4 {
					r.Errorf("three timeouts, and a failure that is none: got %+v", s)
				}
			})
		})
	}
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
			synctest.Wait()
			if n := r.shared.calls.Load(); n != 0 {
				r.Errorf("the primary was called %d times, want 0", n)
			}
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
			run(t, withLocal, failover.Options{ConsecutiveFailures: 1}, func(r *rig) {
				for range 3 {
					if err := test.take(r); err == nil || test.want != nil && !errors.Is(err, test.want) {
						r.Fatalf("got error %v, want %v", err, test.want)
					}
				}
				if s := r.Stats(); r.Open() || s.Failures != 0 || s.Fallbacks != 0 {
					r.Errorf("counts as a failure of the primary: open: %v, %+v", r.Open(), s)
				}
			})
		})
	}
}

// A local engine without room is an error, which is not charged later.
func TestLocalEngineIsFull(t *testing.T) {
	run(t, withLocal, failover.Options{}, func(r *rig) {
		r.use(r.shared, failover.Options{Local: full{r.local}})
		r.shared.set(down)
		for range 20 {
			if _, err := r.Take(ctx, "a", daily, 1); !errors.Is(err, ratelimit.ErrUnavailable) {
				t.Errorf("got error %v, want the local engine's", err)
			}
		}
		if s := r.Stats(); s.Pending != 0 || s.Lost != 0 {
			t.Errorf("%d subjects are in the journal and %d were lost, want none: nothing was admitted", s.Pending, s.Lost)
		}
		r.shared.set(nil)
		time.Sleep(10 * time.Second)
		if d := r.takeN("a", daily, 1000); !d.Allowed() {
			t.Errorf("the primary is back: got %v, want allowed", d.Outcome)
		}
	})
}

// A full engine has no room.
type full struct{ *memory.Limiter }

func (full) Take(context.Context, string, *ratelimit.Plan, int64) (d ratelimit.Decision, err error) {
	return d, ratelimit.ErrUnavailable
}

// A primary that panics in the background has failed. The process goes on.
func TestPanicInTheBackground(t *testing.T) {
	panics := func(context.Context) error { panic("nil map") }
	var cause error
	opts := failover.Options{OnChange: func(failure error) { cause = failure }}
	run(t, withLocal, opts, func(r *rig) {
		r.lose()
		r.shared.set(panics)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		r.wantOpen("probes panic", true)
		if cause == nil || !strings.Contains(cause.Error(), "nil map") {
			r.Errorf("the cause is %v, want one that tells the panic", cause)
		}
		r.regain()
	})
	run(t, withLocal, opts, func(r *rig) {
		r.shared.set(down)
		r.take("a", daily)
		r.shared.set(panics)
		time.Sleep(10 * time.Second)
		if err := r.Close(); err == nil {
			r.Error("Close, while charges panic: got no error, want one that says that a subject is not merged")
		}
		r.shared.set(nil)
		if err := r.Close(); err != nil {
			r.Error(err)
		}
		r.wantUsed("merged after the panics", r.shared.engine, "a", daily, "1/24h0m0s")
	})
}
