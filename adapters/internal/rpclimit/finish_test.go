package rpclimit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// ChargeIf is not asked about calls that were not charged.
func TestChargeIfOfWhatWasNotCharged(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	staff := ratelimit.UnlimitedPlan("staff")
	for name, c := range map[string]struct {
		caller ratelimit.Caller
		err    error
		before int
		asked  int
	}{
		"charged":               {ratelimit.Caller{Subject: "ann", Plan: plan}, nil, 0, 1},
		"one of two charged":    {ratelimit.Caller{Subject: "ann", Plan: staff, Also: []ratelimit.Charge{{Subject: "all", Plan: plan}}}, nil, 0, 1},
		"unlimited":             {ratelimit.Caller{Subject: "ann", Plan: staff}, nil, 0, 0},
		"denied in shadow mode": {ratelimit.Caller{Subject: "ann", Plan: plan}, nil, 1, 0},
		"identify fails":        {ratelimit.Caller{}, errors.New("no"), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			g := newGate(t, Options{Shadow: true, ChargeIf: func(context.Context, string, error) bool { asked++; return false }})
			for range c.before {
				g.Open(t.Context(), "m", c.caller, c.err)
			}
			g.Open(t.Context(), "m", c.caller, c.err).Finish(t.Context(), OK, nil)
			if asked != c.asked {
				t.Errorf("asked %d times, want %d", asked, c.asked)
			}
		})
	}
}

// An engine that admits calls without a plan has charged nothing that could be given back.
func TestFinishWithoutAPlan(t *testing.T) {
	engine := struct {
		wrongEngine
		engine.Adjuster
	}{wrongEngine: wrongEngine{ratelimit.Decision{Outcome: ratelimit.Allowed}}}
	g, err := New("test", engine, true, Options{Refund: true}, func(error) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	g.Open(t.Context(), "m", ratelimit.Caller{Subject: "ann", Plan: plan}, nil).Finish(t.Context(), Internal, nil)
}

// A lateEngine cannot decide, and must not be asked to settle what it has not decided.
type lateEngine struct{ t *testing.T }

func (lateEngine) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, ratelimit.ErrUnavailable
}

func (e lateEngine) Adjust(_ context.Context, subject string, _ *ratelimit.Decision, _ int64, _ string) error {
	e.t.Errorf("%s is charged for a call that was not counted", subject)
	return nil
}

// Settle does nothing if the engine failed and Options let the call pass.
func TestSettleOfWhatWasNotCounted(t *testing.T) {
	g, err := New("test", lateEngine{t}, true, Options{Context: true, FailOpen: true}, func(error) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	call := g.Open(t.Context(), "m", ratelimit.Caller{Subject: "ann", Plan: plan}, nil)
	if err := limit.FromContext(call.Context).Settle(t.Context(), 5); err != nil {
		t.Error(err)
	}
}

// Without Options.Context the handler gets the context of the call, as it is.
func TestNoReservationUnlessAsked(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	if call := newGate(t, Options{}).Open(t.Context(), "m", ratelimit.Caller{Subject: "ann", Plan: plan}, nil); call.Context != t.Context() {
		t.Errorf("the context is %v", call.Context)
	}
}

// A lateContext has a deadline that has passed, and has not noticed.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Now(), true }

// What a handler does at the deadline, such as giving up a connection, is not given back,
// whatever the status, although the context may end a moment later.
func TestFinishAtTheDeadline(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	g := newGate(t, Options{Refund: true})
	early, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for _, c := range []struct {
		ctx  context.Context
		used int64
	}{{t.Context(), 0}, {early, 0}, {lateContext{t.Context()}, 1}} {
		g.Open(c.ctx, "m", ratelimit.Caller{Subject: "ann", Plan: plan}, nil).Finish(c.ctx, Internal, nil)
		d, err := g.limiter.(engine.Peeker).Peek(t.Context(), "ann", plan)
		if used := 10 - d.Remaining(); err != nil || used != c.used {
			t.Errorf("%d units used (%v), want %d", used, err, c.used)
		}
	}
}
