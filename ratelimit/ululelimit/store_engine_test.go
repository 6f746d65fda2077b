package ululelimit_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ulule/limiter/v3"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/ululelimit"
)

func TestEngineWithoutAdjust(t *testing.T) {
	s := newStore(t, newLimiter(t, inMemory()), ululelimit.StoreOptions{})
	if got, err := s.Increment(ctx, "a", 2, perMinute); err != nil || got.Remaining != 1 {
		t.Errorf("Increment by 2: got %+v, %v, want 1 remaining", got, err)
	}
	if _, err := s.Increment(ctx, "a", -1, perMinute); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "no Adjust") {
		t.Errorf("Increment by -1: got error %v, want one that wraps ErrUnsupported and says what is missing", err)
	}
}

// A spy is an engine with one decision, which remembers what it was told to give
// back.
type spy struct {
	decision ratelimit.Decision
	refunded []int64
}

func (e *spy) Take(_ context.Context, _ string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	d := e.decision
	d.Plan, d.Cost = plan, cost
	return d, nil
}

func (e *spy) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	return e.Take(ctx, subject, plan, 1)
}

func (e *spy) Reset(context.Context, string) error { return nil }

func (e *spy) Adjust(_ context.Context, _ string, d *ratelimit.Decision, _ int64, _ string) error {
	if !d.Allowed() {
		return errors.New("not allowed")
	}
	e.refunded = append(e.refunded, d.Cost)
	return nil
}

func TestRefundsArePositiveAndBounded(t *testing.T) {
	engine := &spy{decision: ratelimit.Decision{Outcome: ratelimit.Limited}}
	s := newStore(t, engine, ululelimit.StoreOptions{})
	for _, count := range []int64{-1, -4, -5, math.MinInt64} {
		_, err := s.Increment(ctx, "a", count, perMinute)
		must(t, err)
	}
	if diff := cmp.Diff([]int64{1, 4, 4, 4}, engine.refunded); diff != "" {
		t.Errorf("refunds with a limit of 3 (-want +got):\n%s", diff)
	}
}

// What is left may change between the denial and the answer of an engine that
// asks twice.
func TestDeniedIsReachedWhateverIsLeft(t *testing.T) {
	engine := &spy{decision: ratelimit.Decision{
		Outcome: ratelimit.Limited,
		States:  [4]ratelimit.State{{Remaining: 2}},
	}}
	s := newStore(t, engine, ululelimit.StoreOptions{})
	for name, do := range map[string]func() (limiter.Context, error){
		"Get":  func() (limiter.Context, error) { return s.Get(ctx, "a", perMinute) },
		"Peek": func() (limiter.Context, error) { return s.Peek(ctx, "a", perMinute) },
	} {
		if got, err := do(); err != nil || !got.Reached {
			t.Errorf("%s: got %+v, %v, want Reached", name, got, err)
		}
	}
}

func TestEngineFails(t *testing.T) {
	engine := newLimiter(t, answering{err: errors.New("connection refused")})
	s := newStore(t, engine, ululelimit.StoreOptions{})
	_, getErr := s.Get(ctx, "a", perMinute)
	_, peekErr := s.Peek(ctx, "a", perMinute)
	_, resetErr := s.Reset(ctx, "a", perMinute)
	_, incrementErr := s.Increment(ctx, "a", 5, perMinute)
	for name, err := range map[string]error{"get": getErr, "peek": peekErr, "reset": resetErr, "increment": incrementErr} {
		if !errors.Is(err, ratelimit.ErrUnavailable) || !strings.HasPrefix(err.Error(), "ululelimit: "+name+": ") {
			t.Errorf("%s: got error %v, want one that wraps the engine's and says what was being done", name, err)
		}
	}
}
