package failover_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var largest = ratelimit.MustPlan("largest", ratelimit.Penalty{}, ratelimit.PerDay(fixedwindow.MaxUnits))

// A call that is wrong in itself is an error with every fallback, with the primary and
// without it. It is not a failure of the primary, and nothing keeps it.
func TestInvalidCalls(t *testing.T) {
	take := func(subject string, plan *ratelimit.Plan, cost int64) func(*rig) error {
		return func(r *rig) error { _, err := r.Take(ctx, subject, plan, cost); return err }
	}
	adjust := func(subject string, d ratelimit.Decision, units int64) func(*rig) error {
		return func(r *rig) error { return r.Adjust(ctx, subject, &d, units, "") }
	}
	ban := func(length time.Duration) func(*rig) error {
		return func(r *rig) error { return r.Ban(ctx, "a", length, "") }
	}
	calls := []struct {
		name string
		call func(*rig) error
		want error
	}{
		{"Take without a plan", take("a", nil, 1), ratelimit.ErrInvalid},
		{"Take without a subject", take("", daily, 1), ratelimit.ErrInvalid},
		{"Take of nothing", take("a", daily, 0), ratelimit.ErrInvalid},
		{"Take of more than the limit", take("a", daily, 1001), ratelimit.ErrCostExceedsLimit},
		{"TakeAll of a subject twice", func(r *rig) error {
			return r.TakeAll(ctx, append(bothCharges("a"), bothCharges("b")...), make([]ratelimit.Decision, 4))
		}, ratelimit.ErrInvalid},
		{"Peek without a plan", func(r *rig) error { _, err := r.Peek(ctx, "a", nil); return err }, ratelimit.ErrInvalid},
		{"Peek without a subject", func(r *rig) error { _, err := r.Peek(ctx, "", daily); return err }, ratelimit.ErrInvalid},
		{"Reset without a subject", func(r *rig) error { return r.Reset(ctx, "") }, ratelimit.ErrInvalid},
		{"Ban without a subject", func(r *rig) error { return r.Ban(ctx, "", time.Hour, "") }, ratelimit.ErrInvalid},
		{"Ban that is too long", ban(fixedwindow.MaxLength + 1), ratelimit.ErrInvalid},
		{"Unban without a subject", func(r *rig) error { _, err := r.Unban(ctx, ""); return err }, ratelimit.ErrInvalid},
		{"Adjust without a decision", func(r *rig) error { return r.Adjust(ctx, "a", nil, 0, "") }, ratelimit.ErrInvalid},
		{"Adjust to less than nothing", adjust("a", ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: daily, Cost: 1}, -1), ratelimit.ErrInvalid},
	}
	for _, mode := range []fallback{withLocal, alone} {
		for _, state := range []struct {
			name  string
			begin func(*rig)
		}{
			{"the primary answers", func(*rig) {}},
			{"the primary fails", func(r *rig) { r.shared.set(down) }},
			{"the circuit is open", (*rig).lose},
		} {
			t.Run(mode.String()+", "+state.name, func(t *testing.T) {
				run(t, mode, failover.Options{}, func(r *rig) {
					state.begin(r)
					before, called := r.Stats(), r.shared.calls.Load()
					for _, c := range calls {
						for range 50 {
							if err := c.call(r); !errors.Is(err, c.want) || !errors.Is(err, ratelimit.ErrInvalid) || errors.Is(err, failover.ErrLocalOnly) {
								r.Errorf("%s: got error %v, want one that wraps %v", c.name, err, c.want)
							}
						}
					}
					if after := r.Stats(); after != before {
						r.Errorf("calls that are wrong in themselves changed what is counted from %+v to %+v", before, after)
					}
					if n := r.shared.calls.Load() - called; n != 0 {
						r.Errorf("the primary was asked %d times, want 0", n)
					}
					if err := r.Ban(ctx, "a", fixedwindow.MaxLength, ""); errors.Is(err, ratelimit.ErrInvalid) {
						r.Errorf("the longest ban: got error %v", err)
					}
				})
			})
		}
	}
}

func TestNewRefuses(t *testing.T) {
	primary, local := newShared(t), newEngine(t)
	for _, test := range []struct {
		name    string
		primary ratelimit.Limiter
		opts    failover.Options
		want    string // what the error names
	}{
		{"no primary", nil, failover.Options{}, "the primary must be an engine, got nil"},
		{"a primary that was not set", (*memory.Limiter)(nil), failover.Options{}, "the primary must be an engine, got nil"},
		{"a primary that New did not make", &memory.Limiter{}, failover.Options{}, "got nil or the zero memory.Limiter"},
		{"a local engine that New did not make", primary, failover.Options{Local: &memory.Limiter{}}, "got a nil or zero *memory.Limiter"},
		{"a local engine that was not set", primary, failover.Options{Local: (*memory.Limiter)(nil)}, "Options.Local must be an engine or nil, got a nil or zero *memory.Limiter"},
		{"one engine twice", local, failover.Options{Local: local}, "Options.Local must be another engine than the primary"},
		{"a primary that adjusts nothing", bare{primary}, failover.Options{Local: local}, "with Options.Local the primary must be an engine.Adjuster, got a failover_test.bare"},
		{"a local engine that cannot peek", primary, failover.Options{Local: bare{local}}, "Options.Local must be an engine.Peeker and an engine.Adjuster, got a failover_test.bare"},
		{"a budget under a millisecond", primary, failover.Options{Budget: time.Microsecond}, "Options.Budget must be from 1ms to 1m0s, got 1µs"},
		{"a negative budget", primary, failover.Options{Budget: -1}, "Options.Budget must be from 1ms to 1m0s, got -1ns"},
		{"65 consecutive failures", primary, failover.Options{ConsecutiveFailures: 65}, "Options.ConsecutiveFailures must be from 1 to 64, got 65"},
		{"no backoff", primary, failover.Options{Backoff: 1}, "Options.Backoff must be from 1ms to 1h0m0s, got 1ns"},
		{"a negative journal", primary, failover.Options{JournalSize: -1}, "Options.JournalSize must be from 1 to 16777216, got -1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := failover.New(test.primary, test.opts)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one that names %q", err, test.want)
			}
		})
	}
	if _, err := failover.New(primary, failover.Options{Local: local, Backoff: time.Minute}); err != nil {
		t.Errorf("a shortest backoff over the default of the longest one was refused: %v", err)
	}
}

// bare is an engine that can do nothing but Take, and adding one that adjusts charges
// and can peek.
type (
	bare   struct{ ratelimit.Limiter }
	adding struct {
		ratelimit.Limiter
		engine.Peeker
		engine.Adjuster
	}
)

func TestCapabilities(t *testing.T) {
	full := newEngine(t)
	few := adding{full, full, full}
	for _, test := range []struct {
		name           string
		primary, local ratelimit.Limiter
		peeks, can     bool
	}{
		{"both can", full, newEngine(t), true, true},
		{"the primary cannot", few, newEngine(t), true, false},
		{"the local engine cannot", newEngine(t), few, true, false},
		{"the primary can and there is no other", full, nil, true, true},
		{"the primary cannot and there is no other", bare{full}, nil, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, err := failover.New(test.primary, failover.Options{Local: test.local, Budget: time.Minute})
			must(t, err)
			defer l.Close()
			d, err := l.Take(ctx, "a", daily, 1)
			must(t, err)
			_, errPeek := l.Peek(ctx, "a", daily)
			_, errUnban := l.Unban(ctx, "a")
			_, errBans := l.Bans(ctx)
			_, errHold := l.Hold("id", time.Minute).Take(ctx, "a", daily, 1)
			for name, err := range map[string]error{
				"Peek": errPeek, "Unban": errUnban, "Bans": errBans, "Hold": errHold,
				"Reset":  l.Reset(ctx, "a"),
				"Adjust": l.Adjust(ctx, "a", &d, 2, ""),
				"Ban":    l.Ban(ctx, "a", time.Minute, ""),
			} {
				can := test.can || test.peeks && (name == "Peek" || name == "Adjust")
				if errors.Is(err, errors.ErrUnsupported) == can || errors.Is(err, ratelimit.ErrInvalid) == can || can && err != nil {
					t.Errorf("%s: got error %v, want support: %v", name, err, can)
				}
			}
		})
	}
}
