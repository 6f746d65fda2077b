package ululelimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ulule/limiter/v3"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/ululelimit"
)

// A window of ulule's begins at any fraction of a second.
func TestResetIsNeverEarly(t *testing.T) {
	for _, fraction := range []time.Duration{0, time.Millisecond, time.Second / 2, time.Second - time.Nanosecond} {
		t.Run(fraction.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, inMemory())
				p := plan(ratelimit.PerMinute(1))
				time.Sleep(fraction)
				take(t, l, p, 1)
				ends := time.Now().Add(time.Minute)
				time.Sleep(10 * time.Second)
				d := take(t, l, p, 1)
				if late := time.Unix(d.Reset(), 0).Sub(ends); late < 0 || late > time.Second {
					t.Errorf("Reset is %v after the end of the window, want 0 to 1s", late)
				}
				if over := d.RetryAfter - time.Until(time.Unix(d.Reset(), 0)); over < time.Millisecond {
					t.Errorf("RetryAfter goes on for %v after Reset, want the millisecond that a store in Redis may be wrong by", over)
				}
				time.Sleep(d.RetryAfter)
				if d := take(t, l, p, 1); !d.Allowed() {
					t.Errorf("after RetryAfter the request has to wait another %v", d.RetryAfter)
				}
			})
		})
	}
}

func TestPenaltyIsIgnored(t *testing.T) {
	l := newLimiter(t, inMemory())
	p := ratelimit.MustPlan("strict", ratelimit.Penalty{Strikes: 1, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Hour}, ratelimit.PerDay(1))
	take(t, l, p, 1)
	for range 10 {
		if d := take(t, l, p, 1); d.Outcome != ratelimit.Limited || d.StrikesLeft != -1 {
			t.Fatalf("got %v with %d strikes left, want limited with -1", d.Outcome, d.StrikesLeft)
		}
	}
}

func TestPlansThatCannotBeDecided(t *testing.T) {
	l := newLimiter(t, inMemory())
	for _, test := range []struct {
		name string
		plan *ratelimit.Plan
		want string // "": it can be decided
	}{
		{"one quota", plan(ratelimit.PerMinute(fixedwindow.MaxUnits)), ""},
		{"no plan", nil, "no plan"},
		{"two quotas", plan(ratelimit.PerSecond(1), ratelimit.PerMinute(10)), "a plan with 1 quota, got 2"},
		{"another window", plan(ratelimit.Quota{Limit: 1, Window: 2 * time.Second}), "one of the windows"},
		{"a calendar window", plan(ratelimit.PerMonth(10)), "cannot count in calendar windows"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, takeErr := l.Take(ctx, "a", test.plan, 1)
			_, peekErr := l.Peek(ctx, "a", test.plan)
			for name, err := range map[string]error{"Take": takeErr, "Peek": peekErr} {
				switch {
				case test.want == "" && err != nil:
					t.Errorf("%s: %v", name, err)
				case test.want != "" && (!errors.Is(err, ratelimit.ErrInvalid) || !strings.Contains(err.Error(), test.want)):
					t.Errorf("%s: got error %v, want one that wraps ErrInvalid and says %q", name, err, test.want)
				}
			}
		})
	}
}

// An answering store has one answer.
type answering struct {
	answer limiter.Context
	err    error
}

func (a answering) Get(context.Context, string, limiter.Rate) (limiter.Context, error) {
	return a.answer, a.err
}

func (a answering) Peek(context.Context, string, limiter.Rate) (limiter.Context, error) {
	return a.answer, a.err
}

func (a answering) Reset(context.Context, string, limiter.Rate) (limiter.Context, error) {
	return a.answer, a.err
}

func (a answering) Increment(context.Context, string, int64, limiter.Rate) (limiter.Context, error) {
	return a.answer, a.err
}

func TestUnavailable(t *testing.T) {
	cause := errors.New("connection refused")
	l := newLimiter(t, answering{err: cause})
	p := plan(ratelimit.PerMinute(10))
	_, takeErr := l.Take(ctx, "a", p, 1)
	_, peekErr := l.Peek(ctx, "a", p)
	for name, err := range map[string]error{"Take": takeErr, "Peek": peekErr, "Reset": l.Reset(ctx, "a")} {
		if !errors.Is(err, ratelimit.ErrUnavailable) || !errors.Is(err, cause) {
			t.Errorf("%s: got error %v, want one that wraps ErrUnavailable and the store's", name, err)
		}
	}
}

// Stores are written elsewhere too.
func TestOddStores(t *testing.T) {
	p := plan(ratelimit.PerMinute(10))
	for _, test := range []struct {
		name      string
		answer    limiter.Context
		remaining int64
	}{
		{"less than nothing remains", limiter.Context{Remaining: -3}, 0},
		{"more than the limit remains", limiter.Context{Remaining: 11}, 10},
		{"denied although enough remains", limiter.Context{Remaining: 9, Reached: true}, 4},
	} {
		d := take(t, newLimiter(t, answering{answer: test.answer}), p, 5)
		if d.Remaining() != test.remaining || d.Allowed() == test.answer.Reached || d.Allowed() != (d.RetryAfter == 0) {
			t.Errorf("%s: got %v with %d remaining, to wait %v, want %d", test.name, d.Outcome, d.Remaining(), d.RetryAfter, test.remaining)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for want, store := range map[string]limiter.Store{
		"New needs a store, got nil":                                (*ululelimit.Store)(nil),
		"windows must be whole seconds from 1s to 8784h, got 500ms": inMemory(),
	} {
		if _, err := ululelimit.New(store, time.Second/2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one that says %q", err, want)
		}
	}
}
