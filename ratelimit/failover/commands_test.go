package failover_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// During an outage commands take effect in this process, and say so.
func TestCommandsDuringAnOutage(t *testing.T) {
	outcome := func(r *rig, promise string, want ratelimit.Outcome) {
		r.Helper()
		if d := r.take("a", daily); d.Outcome != want {
			r.Errorf("%s: got %v, want %v", promise, d.Outcome, want)
		}
	}
	// here checks the error of a command that took effect in this process.
	here := func(r *rig, err error) {
		r.Helper()
		if !errors.Is(err, ratelimit.ErrUnavailable) || !errors.Is(err, failover.ErrLocalOnly) {
			r.Errorf("got error %v, want one that wraps ErrUnavailable and ErrLocalOnly", err)
		}
	}
	for _, test := range []struct {
		name string
		run  func(r *rig)
	}{
		{"a ban holds here, until the primary is back", func(r *rig) {
			r.lose()
			here(r, r.Ban(ctx, "a", time.Hour, ""))
			outcome(r, "during the outage", ratelimit.Banned)
			if bans, err := r.Bans(ctx); err != nil || len(bans) != 1 {
				r.Errorf("Bans during the outage: got %v, %v, want the one", bans, err)
			}
			r.regain()
			outcome(r, "after the outage", ratelimit.Allowed)
			must(r, r.Ban(ctx, "a", time.Hour, ""))
			outcome(r, "once it was repeated", ratelimit.Banned)
		}},
		{"a ban holds here although no request has noticed that the primary fails", func(r *rig) {
			r.shared.set(down)
			here(r, r.Ban(ctx, "a", time.Hour, ""))
			if bans, err := r.Bans(ctx); err != nil || len(bans) != 1 {
				r.Errorf("Bans: got %v, %v, want the one", bans, err)
			}
			outcome(r, "of the first request", ratelimit.Banned)
		}},
		{"an unban holds here, until the primary is back", func(r *rig) {
			must(r, r.Ban(ctx, "a", time.Hour, ""))
			r.lose()
			outcome(r, "before it is unbanned", ratelimit.Banned)
			for _, want := range []bool{true, false} {
				unbanned, err := r.Unban(ctx, "a")
				if here(r, err); unbanned != want {
					r.Errorf("Unban found a ban: %v, want %v", unbanned, want)
				}
			}
			outcome(r, "during the outage", ratelimit.Allowed)
			r.regain()
			outcome(r, "after the outage", ratelimit.Banned)
		}},
		{"a reset holds here, and forgets the journal", func(r *rig) {
			r.takeN("a", daily, 900)
			r.lose()
			r.takeN("a", daily, 90)
			here(r, r.Reset(ctx, "a"))
			r.takeN("a", daily, 3)
			r.wantUsed("during the outage", r.local, "a", daily, "3/24h0m0s")
			r.regain()
			r.wantUsed("after the outage", r.shared.engine, "a", daily, "903/24h0m0s")
			must(r, r.Reset(ctx, "a"))
			r.wantUsed("once it was repeated", r.shared.engine, "a", daily, "0/24h0m0s")
			r.wantUsed("and here", r.local, "a", daily, "0/24h0m0s")
		}},
	} {
		t.Run(test.name, func(t *testing.T) { run(t, withLocal, failover.Options{}, test.run) })
	}
}

// commands are those that a Limiter sends to its primary.
func (r *rig) commands() map[string]func() error {
	return map[string]func() error{
		"Ban":   func() error { return r.Ban(ctx, "a", time.Hour, "") },
		"Unban": func() error { _, err := r.Unban(ctx, "a"); return err },
		"Bans":  func() error { _, err := r.Bans(ctx); return err },
		"Reset": func() error { return r.Reset(ctx, "a") },
	}
}

func TestCommandsEnd(t *testing.T) {
	run(t, withLocal, failover.Options{}, func(r *rig) {
		d := r.take("a", daily)
		r.shared.set(hangs)
		for name, command := range r.commands() {
			began := time.Now()
			err := command()
			if here := errors.Is(err, context.DeadlineExceeded) && errors.Is(err, failover.ErrLocalOnly); here == (name == "Bans") {
				r.Errorf("%s: got error %v, want one that wraps DeadlineExceeded and ErrLocalOnly, and none for Bans", name, err)
			}
			if waited := time.Since(began); waited > time.Second {
				r.Errorf("%s took %v", name, waited)
			}
		}
		r.shared.set(slow(900 * time.Millisecond)) // beyond the budget of a decision
		for name, command := range r.commands() {
			if err := command(); err != nil {
				r.Errorf("%s of a slow primary: %v", name, err)
			}
		}
		r.shared.set(hangs)
		began := time.Now()
		if r.adjust("a", &d, 0); time.Since(began) != 50*time.Millisecond {
			r.Errorf("Adjust took %v, want the budget", time.Since(began))
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if err := r.Reset(gone, "a"); !errors.Is(err, context.Canceled) {
			r.Errorf("Reset of a caller that has left: got error %v", err)
		}
	})
}
