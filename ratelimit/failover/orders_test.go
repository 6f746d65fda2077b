package failover_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

func TestOrdersDuringAnOutage(t *testing.T) {
	outcome := func(r *rig, promise string, want ratelimit.Outcome) {
		r.Helper()
		if d := r.take("a", daily); d.Outcome != want {
			r.Errorf("%s: got %v, want %v", promise, d.Outcome, want)
		}
	}
	must := func(r *rig, err error) {
		r.Helper()
		if err != nil {
			r.Fatal(err)
		}
	}
	for _, test := range []struct {
		name string
		run  func(r *rig)
	}{
		{"a ban holds here and there", func(r *rig) {
			r.lose()
			must(r, r.Ban(ctx, "a", time.Hour))
			ends := time.Now().Add(time.Hour).Unix()
			outcome(r, "during the outage", ratelimit.Banned)
			if bans, err := r.Bans(ctx); err != nil || len(bans) != 1 {
				r.Errorf("Bans during the outage: got %v, %v, want the one", bans, err)
			}
			r.regain()
			if d := r.take("a", daily); d.Outcome != ratelimit.Banned || d.BanEnds != ends {
				r.Errorf("after the outage: got %v until %d, want banned until %d", d.Outcome, d.BanEnds, ends)
			}
		}},
		{"a ban that is over is not made again", func(r *rig) {
			r.lose()
			must(r, r.Ban(ctx, "a", time.Minute))
			time.Sleep(2 * time.Minute)
			r.regain()
			outcome(r, "after the ban", ratelimit.Allowed)
		}},
		{"a subject is unbanned here and there", func(r *rig) {
			must(r, r.Ban(ctx, "a", time.Hour))
			r.take("a", daily)
			r.lose()
			outcome(r, "before it is unbanned", ratelimit.Banned)
			unbanned, err := r.Unban(ctx, "a")
			if must(r, err); !unbanned {
				r.Error("Unban did not find the ban")
			}
			outcome(r, "during the outage", ratelimit.Allowed)
			r.regain()
			outcome(r, "after the outage", ratelimit.Allowed)
		}},
		{"a ban is made in place of one that the primary gave", func(r *rig) {
			r.shared.engine.Ban(ctx, "a", time.Minute)
			r.take("a", daily)
			r.lose()
			must(r, r.Ban(ctx, "a", time.Hour))
			outcome(r, "at once", ratelimit.Banned)
			time.Sleep(30 * time.Minute)
			outcome(r, "half an hour later", ratelimit.Banned)
			r.regain()
			outcome(r, "after the outage", ratelimit.Banned)
		}},
		{"a subject that the primary banned is unbanned before any request meets it here", func(r *rig) {
			r.shared.engine.Ban(ctx, "a", time.Hour)
			r.take("a", daily)
			r.lose()
			unbanned, err := r.Unban(ctx, "a")
			if must(r, err); !unbanned {
				r.Error("Unban did not find the ban")
			}
			outcome(r, "during the outage", ratelimit.Allowed)
			unbanned, err = r.Unban(ctx, "a")
			if must(r, err); unbanned {
				r.Error("Unban found the ban again")
			}
		}},
		{"the last order holds", func(r *rig) {
			r.lose()
			must(r, r.Ban(ctx, "a", time.Hour))
			_, err := r.Unban(ctx, "a")
			must(r, err)
			r.regain()
			outcome(r, "banned, then unbanned", ratelimit.Allowed)
			r.lose()
			_, err = r.Unban(ctx, "a")
			must(r, err)
			must(r, r.Ban(ctx, "a", time.Hour))
			r.regain()
			outcome(r, "unbanned, then banned", ratelimit.Banned)
		}},
		{"a reset holds here and there", func(r *rig) {
			r.takeN("a", daily, 900)
			r.lose()
			r.takeN("a", daily, 90)
			must(r, r.Ban(ctx, "a", time.Hour))
			must(r, r.Reset(ctx, "a"))
			r.takeN("a", daily, 3)
			r.wantUsed("during the outage", r.local, "a", daily, "3/24h0m0s")
			r.regain()
			r.wantUsed("after the outage", r.shared.engine, "a", daily, "3/24h0m0s")
		}},
		{"what the primary was told in the meantime stays", func(r *rig) {
			// One call fails, and the circuit stays closed.
			r.shared.set(down)
			r.takeN("a", daily, 100)
			r.shared.set(nil)
			must(r, r.Reset(ctx, "a"))
			r.regain()
			r.wantUsed("a reset drops what is not merged", r.shared.engine, "a", daily, "0/24h0m0s")
			r.lose()
			r.wantUsed("a reset is one of the local engine as well", r.local, "a", daily, "0/24h0m0s")
		}},
		{"an order that was not carried out yet is undone", func(r *rig) {
			for i, undo := range []func() error{
				func() error { _, err := r.Unban(ctx, "a"); return err },
				func() error { return r.Ban(ctx, "a", time.Minute) },
			} {
				r.lose()
				must(r, r.Ban(ctx, "a", time.Hour))
				calls := 0
				r.shared.set(func(context.Context) error { // the probe gets through, and no more
					if calls++; calls == 1 {
						return nil
					}
					return errDown
				})
				for r.Circuit() != failover.CircuitClosed {
					time.Sleep(time.Millisecond)
				}
				r.shared.set(nil)
				if r.Stats().Pending == 0 {
					r.Fatal("the order has been carried out: the test has tested nothing")
				}
				must(r, undo())
				r.regain()
				time.Sleep(time.Minute)
				outcome(r, fmt.Sprint("undone in way ", i), ratelimit.Allowed)
			}
		}},
		{"a ban of the primary is one here", func(r *rig) {
			must(r, r.Ban(ctx, "a", time.Hour))
			r.lose()
			outcome(r, "banned before the outage", ratelimit.Banned)
		}},
		{"what is no ban is refused", func(r *rig) {
			r.lose()
			if err := r.Ban(ctx, "a", -time.Second); !errors.Is(err, ratelimit.ErrInvalid) {
				r.Errorf("got error %v, want one that wraps ErrInvalid", err)
			}
			r.regain()
		}},
	} {
		t.Run(test.name, func(t *testing.T) { run(t, failover.FailLocal, failover.Options{}, test.run) })
	}
}

func TestOrdersNeedRoom(t *testing.T) {
	run(t, failover.FailLocal, failover.Options{Journal: 1}, func(r *rig) {
		r.lose()
		refused := 0
		for i := range 100 {
			err := r.Ban(ctx, string(rune('A'+i)), time.Hour)
			if err != nil && !errors.Is(err, ratelimit.ErrUnavailable) {
				r.Fatal(err)
			}
			if err != nil {
				refused++
			}
		}
		if refused == 0 {
			r.Error("a journal for one subject took a hundred orders")
		}
		r.regain()
		bans, err := r.Bans(ctx)
		if err != nil || len(bans) != 100-refused {
			r.Errorf("%d orders were taken, %d bans are in the primary (%v)", 100-refused, len(bans), err)
		}
	})
}

func TestCommandsOfTheOtherModes(t *testing.T) {
	for _, mode := range []failover.Mode{failover.FailOpen, failover.FailClosed} {
		t.Run(mode.String(), func(t *testing.T) {
			run(t, mode, failover.Options{}, func(r *rig) {
				d := r.takeN("a", daily, 10)
				if err := r.Ban(ctx, "b", time.Hour); err != nil {
					r.Error(err)
				}
				if unbanned, err := r.Unban(ctx, "b"); !unbanned || err != nil {
					r.Errorf("Unban: got %v, %v", unbanned, err)
				}
				r.lose()
				commands := map[string]func() error{
					"Ban":    func() error { return r.Ban(ctx, "a", time.Hour) },
					"Unban":  func() error { _, err := r.Unban(ctx, "a"); return err },
					"Bans":   func() error { _, err := r.Bans(ctx); return err },
					"Reset":  func() error { return r.Reset(ctx, "a") },
					"Refund": func() error { return r.Refund(ctx, "a", &d) },
				}
				for name, command := range commands {
					if err := command(); !errors.Is(err, ratelimit.ErrUnavailable) {
						r.Errorf("%s while the circuit is open: got error %v, want one that wraps ErrUnavailable", name, err)
					}
				}
				r.regain()
				for name, command := range commands {
					if err := command(); err != nil {
						r.Errorf("%s after the outage: %v", name, err)
					}
				}
			})
		})
	}
}

func TestCommandsEnd(t *testing.T) {
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		d := r.take("a", daily)
		release := make(chan struct{})
		defer close(release)
		r.shared.set(hangs(release))
		for name, command := range map[string]func() error{
			"Ban":    func() error { return r.Ban(ctx, "a", time.Hour) },
			"Unban":  func() error { _, err := r.Unban(ctx, "a"); return err },
			"Bans":   func() error { _, err := r.Bans(ctx); return err },
			"Reset":  func() error { return r.Reset(ctx, "a") },
			"Refund": func() error { return r.Refund(ctx, "a", &d) },
		} {
			began := time.Now()
			if err := command(); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ratelimit.ErrUnavailable) {
				r.Errorf("%s: got error %v, want one that wraps DeadlineExceeded and ErrUnavailable", name, err)
			}
			if waited := time.Since(began); waited > time.Second || name == "Refund" && waited > 50*time.Millisecond {
				r.Errorf("%s took %v", name, waited)
			}
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if err := r.Reset(gone, "a"); !errors.Is(err, context.Canceled) {
			r.Errorf("Reset for a caller who is gone: got error %v", err)
		}
	})
}

func TestRefund(t *testing.T) {
	refund := func(r *rig, d ratelimit.Decision) {
		r.Helper()
		if err := r.Refund(ctx, "a", &d); err != nil {
			r.Fatal(err)
		}
	}
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		there := r.takeN("a", daily, 10)
		refund(r, there)
		r.wantUsed("decided and refunded there", r.shared.engine, "a", daily, "0/24h0m0s")
		r.lose()
		r.takeN("a", daily, 7)
		here := r.takeN("a", daily, 20)
		refund(r, here)
		r.wantUsed("decided and refunded here", r.local, "a", daily, "7/24h0m0s")
		after := r.takeN("a", daily, 30)
		r.regain()
		r.wantUsed("merged", r.shared.engine, "a", daily, "37/24h0m0s")
		refund(r, after)
		r.wantUsed("decided here, merged, then refunded", r.shared.engine, "a", daily, "7/24h0m0s")
		limited := ratelimit.Decision{Outcome: ratelimit.Limited, Plan: daily, Cost: 5, Time: time.Now().UnixNano()}
		refund(r, limited)
		r.wantUsed("a denial gives nothing back", r.shared.engine, "a", daily, "7/24h0m0s")
	})
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		r.shared.set(down)
		d := r.takeN("a", daily, 10)
		r.shared.set(nil)
		refund(r, d)
		r.regain()
		r.wantUsed("refunded before it was merged", r.shared.engine, "a", daily, "0/24h0m0s")
		r.wantUsed("refunded before it was merged", r.local, "a", daily, "0/24h0m0s")
	})
	run(t, failover.FailOpen, failover.Options{}, func(r *rig) {
		r.takeN("a", daily, 10)
		r.shared.set(down)
		d := r.take("a", daily)
		r.shared.set(nil)
		refund(r, d)
		r.wantUsed("a request that was never counted is not given back", r.shared.engine, "a", daily, "10/24h0m0s")
	})
}

// bare is an engine that can do nothing but Take.
type bare struct{ l ratelimit.Limiter }

func (b bare) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	return b.l.Take(ctx, subject, plan, cost)
}

func TestCapabilities(t *testing.T) {
	full := newEngine(t)
	for _, test := range []struct {
		name           string
		primary, local ratelimit.Limiter
		mode           failover.Mode
		can            bool
	}{
		{"both can", full, newEngine(t), failover.FailLocal, true},
		{"the primary cannot", bare{full}, newEngine(t), failover.FailLocal, false},
		{"the local engine cannot", full, bare{newEngine(t)}, failover.FailLocal, false},
		{"the primary can and there is no other", full, nil, failover.FailOpen, true},
		{"the primary cannot and there is no other", bare{full}, nil, failover.FailClosed, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, err := failover.New(test.primary, test.mode, failover.Options{Local: test.local, Budget: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			d, err := l.Take(ctx, "a", daily, 1)
			if err != nil {
				t.Fatal(err)
			}
			_, errPeek := l.Peek(ctx, "a", daily)
			_, errLift := l.Unban(ctx, "a")
			_, errBans := l.Bans(ctx)
			for name, err := range map[string]error{
				"Peek": errPeek, "Unban": errLift, "Bans": errBans,
				"Reset":  l.Reset(ctx, "a"),
				"Refund": l.Refund(ctx, "a", &d),
				"Ban":    l.Ban(ctx, "a", time.Minute),
			} {
				if errors.Is(err, errors.ErrUnsupported) == test.can || test.can && err != nil {
					t.Errorf("%s: got error %v, want support: %v", name, err, test.can)
				}
			}
		})
	}
}

// An engine that can do nothing but Take still fails over.
func TestBareEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primary := newShared(t)
		l, err := failover.New(bare{primary}, failover.FailLocal, failover.Options{Local: bare{newEngine(t)}})
		if err != nil {
			t.Fatal(err)
		}
		primary.set(down)
		if d, err := l.Take(ctx, "a", daily, 3); err != nil || !d.Allowed() {
			t.Errorf("got %v, %v", d.Outcome, err)
		}
		primary.set(slow(60 * time.Millisecond))
		if d, err := l.Take(ctx, "b", daily, 3); err != nil || !d.Allowed() {
			t.Errorf("got %v, %v", d.Outcome, err)
		}
		primary.set(nil)
		time.Sleep(time.Second)
		for _, subject := range []string{"a", "b"} {
			if got := used(t, primary.engine, subject, daily); got != "3/24h0m0s" {
				t.Errorf("merged: %s used %s, want 3", subject, got)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}
