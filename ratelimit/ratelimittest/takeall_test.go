package ratelimittest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// blindTo is an engine that cannot look one subject up.
type blindTo struct {
	*memory.Limiter
	subject string
}

func (e blindTo) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	if subject == e.subject {
		return ratelimit.Decision{}, ratelimit.ErrUnavailable
	}
	return e.Limiter.Peek(ctx, subject, plan)
}

// Of several charges, each must be looked up.
func TestDenyOfAnEngineThatFailsInPart(t *testing.T) {
	charges := []ratelimit.Charge{{Subject: "ann", Plan: plan, Cost: 1}, {Subject: "bob", Plan: plan, Cost: 1}}
	for _, c := range charges {
		r := ratelimittest.NewRecorder(blindTo{newEngine(t, ratelimittest.NewClock(noon)), c.Subject})
		r.Deny(ratelimit.Limited)
		if err := r.TakeAll(t.Context(), charges, make([]ratelimit.Decision, 2)); !errors.Is(err, ratelimit.ErrUnavailable) {
			t.Errorf("%s cannot be looked up: %v, want the error of the engine", c.Subject, err)
		}
	}
}
