package failover_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// An order of the outage that is being carried out is not carried out after a
// command that was given later.
func TestCommandDuringAMerge(t *testing.T) {
	for _, test := range []struct {
		name    string
		command func(r *rig) error
		want    ratelimit.Outcome
	}{
		{"Unban", func(r *rig) error { _, err := r.Unban(ctx, "a"); return err }, ratelimit.Allowed},
		{"Reset", func(r *rig) error { return r.Reset(ctx, "a") }, ratelimit.Allowed},
		{"a shorter Ban", func(r *rig) error { return r.Ban(ctx, "a", time.Minute) }, ratelimit.Allowed},
	} {
		t.Run(test.name, func(t *testing.T) {
			run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
				r.lose()
				if err := r.Ban(ctx, "a", time.Hour); err != nil {
					r.Fatal(err)
				}
				// Each call takes a while once the circuit is closed.
				var merging atomic.Bool
				r.shared.set(func(context.Context) error {
					if r.Circuit() == failover.CircuitClosed {
						merging.Store(true)
						time.Sleep(300 * time.Millisecond)
					}
					return nil
				})
				for !merging.Load() {
					time.Sleep(time.Millisecond)
				}
				if err := test.command(r); err != nil {
					r.Fatal(err)
				}
				r.shared.set(nil)
				time.Sleep(2 * time.Minute)
				r.regain()
				if d := r.take("a", daily); d.Outcome != test.want {
					r.Errorf("after a ban of an hour in the outage, and then the command: got %v, want %v", d.Outcome, test.want)
				}
			})
		})
	}
}

// Requests of the subject do not wait longer than the budget for a command that
// hangs, and the entry that the command held is merged in the end.
func TestCommandHangs(t *testing.T) {
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		r.shared.set(down)
		r.takeN("a", daily, 5)
		release := make(chan struct{})
		r.shared.set(hangs(release))
		if _, err := r.Unban(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			r.Fatalf("Unban: got error %v, want one that says that there was no answer in time", err)
		}
		r.shared.set(nil)
		began := time.Now()
		if r.take("a", daily); time.Since(began) != 0 {
			r.Errorf("the next request waited %v for a command that hangs, want 0", time.Since(began))
		}
		close(release)
		time.Sleep(time.Second)
		r.regain()
		r.wantUsed("merged after the command", r.shared.engine, "a", daily, "6/24h0m0s")
	})
}

// A primary that panics in a command keeps no entry from being merged.
func TestCommandPanics(t *testing.T) {
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		r.shared.set(down)
		r.takeN("a", daily, 5)
		r.shared.set(func(context.Context) error { panic("index out of range") })
		if err := r.Reset(ctx, "a"); err == nil || !strings.Contains(err.Error(), "index out of range") {
			r.Errorf("Reset: got error %v, want one that names the panic", err)
		}
		r.regain()
		r.wantUsed("merged", r.shared.engine, "a", daily, "5/24h0m0s")
	})
}

// Unban knows the orders of the outage that the primary has not been given yet.
func TestLiftOfAnOrder(t *testing.T) {
	for _, test := range []struct {
		name   string
		before bool // the primary has a ban
		order  func(r *rig) error
		want   bool
	}{
		{"a ban", false, func(r *rig) error { return r.Ban(ctx, "a", time.Hour) }, true},
		{"an unban", true, func(r *rig) error { _, err := r.Unban(ctx, "a"); return err }, false},
		{"a reset", true, func(r *rig) error { return r.Reset(ctx, "a") }, false},
		{"usage only", true, func(r *rig) error { _, err := r.Take(ctx, "a", daily, 1); return err }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
				if test.before {
					if err := r.shared.engine.Ban(ctx, "a", time.Hour); err != nil {
						r.Fatal(err)
					}
				}
				r.lose()
				if err := test.order(r); err != nil {
					r.Fatal(err)
				}
				var calls atomic.Int64
				r.shared.set(func(context.Context) error { // the probe gets through, and no more
					if calls.Add(1) == 1 {
						return nil
					}
					return errDown
				})
				for r.Circuit() != failover.CircuitClosed {
					time.Sleep(time.Millisecond)
				}
				r.shared.set(nil)
				if unbanned, err := r.Unban(ctx, "a"); err != nil || unbanned != test.want {
					r.Errorf("got %v, %v, want %v", unbanned, err, test.want)
				}
				r.regain()
				if d := r.take("a", daily); !d.Allowed() {
					r.Errorf("after the unban: got %v, want allowed", d.Outcome)
				}
			})
		})
	}
}

// A denial that the primary gave before a command is not remembered after it.
func TestDenialFromBeforeACommand(t *testing.T) {
	for name, command := range map[string]func(r *rig) error{
		"Unban": func(r *rig) error { _, err := r.Unban(ctx, "a"); return err },
		"Reset": func(r *rig) error { return r.Reset(ctx, "a") },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
				if err := r.shared.engine.Ban(ctx, "a", time.Hour); err != nil {
					r.Fatal(err)
				}
				p := &lagging{shared: r.shared}
				l, err := failover.New(p, failover.FailLocal, failover.Options{Local: r.local})
				if err != nil {
					r.Fatal(err)
				}
				defer l.Close()
				r.Limiter = l
				p.lag.Store(true)
				go r.Take(ctx, "a", daily, 1)
				synctest.Wait()
				p.lag.Store(false)
				if err := command(r); err != nil {
					r.Fatal(err)
				}
				time.Sleep(time.Second)
				r.lose()
				if d := r.take("a", daily); !d.Allowed() {
					r.Errorf("in the outage: got %v, want allowed", d.Outcome)
				}
			})
		})
	}
}

// A lagging primary decides, and answers some time later.
type lagging struct {
	*shared
	lag atomic.Bool
}

func (l *lagging) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	d, err := l.shared.Take(ctx, subject, plan, cost)
	if l.lag.Load() {
		time.Sleep(40 * time.Millisecond)
	}
	return d, err
}
