package limit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// onlyTake is an engine that can do nothing else.
type onlyTake struct{ ratelimit.Limiter }

// What was not charged is not settled.
func TestSettleOfWhatWasNotCharged(t *testing.T) {
	at := time.Unix(now, 0)
	spent := ratelimit.MustPlan("spent", ratelimit.DefaultPenalty(), ratelimit.PerMinute(40))
	for name, c := range map[string]struct {
		caller  ratelimit.Caller
		opts    limit.Options
		down    bool
		outcome ratelimit.Outcome
	}{
		"unlimited":            {ratelimit.Caller{Subject: "a", Plan: ratelimit.UnlimitedPlan("u")}, limit.Options{}, false, ratelimit.Allowed},
		"suspended, in shadow": {ratelimit.Caller{Subject: "a", Plan: ratelimit.SuspendedPlan("s")}, limit.Options{Shadow: true}, false, ratelimit.Suspended},
		"limited, in shadow":   {ratelimit.Caller{Subject: "b", Plan: spent}, limit.Options{Shadow: true}, false, ratelimit.Limited},
		"invalid, in shadow":   {ratelimit.Caller{Subject: "a"}, limit.Options{Shadow: true}, false, 0},
		"fail open":            {ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{FailOpen: true}, true, ratelimit.Allowed},
		"a failure, in shadow": {ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{Shadow: true}, true, ratelimit.Allowed},
	} {
		t.Run(name, func(t *testing.T) {
			l := &flaky{Limiter: newEngine(t, &at)}
			if _, err := l.Take(t.Context(), "b", spent, 40); err != nil {
				t.Fatal(err)
			}
			var used ratelimit.Limiter = l
			if c.down {
				used = downAt{l}
			}
			res := reserve(t, used, c.caller, c.opts, nil)
			for _, units := range []int64{0, 40, 70} {
				settle(t, res, units)
			}
			if l.changes > 0 {
				t.Errorf("the engine was asked to change usage %d times, want never", l.changes)
			}
			if got := res.Decision().Outcome; got != c.outcome {
				t.Errorf("the decision is %v, want %v", got, c.outcome)
			}
		})
	}
}

// The further charges of an unlimited caller are made, and Settle changes them.
func TestSettleOfAnUnlimitedCaller(t *testing.T) {
	at := time.Unix(now, 0)
	l := newEngine(t, &at)
	caller := ratelimit.Caller{Subject: "staff", Plan: ratelimit.UnlimitedPlan("u"), Also: []ratelimit.Charge{{Subject: "a", Plan: tokens}}}
	res := reserve(t, l, caller, limit.Options{}, nil)
	wantUsed(t, l, "charged", [2]int64{40, 40})
	settle(t, res, 70)
	wantUsed(t, l, "settled", [2]int64{70, 70})
}

// downAt decides nothing, but could still change usage.
type downAt struct{ *flaky }

func (downAt) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, ratelimit.ErrUnavailable
}

// An engine that hangs returns the error of its context when the half second is over.
func TestSettleWithAnEngineThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Unix(now, 0)
		res := reserve(t, hung{newEngine(t, &at)}, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{}, nil)
		for _, units := range []int64{70, 3} {
			err := res.Settle(t.Context(), units)
			if !errors.Is(err, ratelimit.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Settle(%d): got error %v, want one that wraps ErrUnavailable and that of the context", units, err)
			}
		}
	})
}

type hung struct{ *memory.Limiter }

func (hung) Adjust(ctx context.Context, _ string, _ *ratelimit.Decision, _ int64, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// An adjustment that the engine finds invalid was not made, and is not repeated.
func TestSettleAfterAnInvalidCall(t *testing.T) {
	at := time.Unix(now, 0)
	l := &flaky{Limiter: newEngine(t, &at)}
	res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{}, nil)
	l.down = ratelimit.ErrInvalid
	if err := res.Settle(t.Context(), 70); !errors.Is(err, ratelimit.ErrInvalid) || errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("got error %v, want one that wraps ErrInvalid alone", err)
	}
	l.down, l.changes = nil, 0
	settle(t, res, 3)
	wantUsed(t, l.Limiter, "settled again", [2]int64{3, 3})
	if l.changes != 1 {
		t.Errorf("the engine was called %d times, want once", l.changes)
	}
}

func TestSettleRefuses(t *testing.T) {
	at := time.Unix(now, 0)
	l := newEngine(t, &at)
	caller := ratelimit.Caller{Subject: "a", Plan: tokens}
	reserved := reserve(t, l, caller, limit.Options{}, nil)
	for name, c := range map[string]struct {
		res         *limit.Reservation
		units       int64
		unsupported bool
	}{
		"no reservation":        {limit.FromContext(t.Context()), 1, false},
		"negative units":        {reserved, -1, false},
		"not an Adjuster, more": {reserve(t, onlyTake{newEngine(t, &at)}, caller, limit.Options{}, nil), 41, true},
		"not an Adjuster, less": {reserve(t, onlyTake{newEngine(t, &at)}, caller, limit.Options{}, nil), 39, true},
	} {
		err := c.res.Settle(t.Context(), c.units)
		if !errors.Is(err, ratelimit.ErrInvalid) || errors.Is(err, errors.ErrUnsupported) != c.unsupported {
			t.Errorf("%s: got error %v, want one that wraps ErrInvalid, and ErrUnsupported: %t", name, err, c.unsupported)
		}
	}
	settle(t, reserve(t, onlyTake{newEngine(t, &at)}, caller, limit.Options{}, nil), 40) // nothing is added or given back
	var none *limit.Reservation
	if none.Decision() != (ratelimit.Decision{}) || none.Caller().Subject != "" {
		t.Error("a request without a reservation has a decision or a caller")
	}
}
