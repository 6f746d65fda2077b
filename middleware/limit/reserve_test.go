package limit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// What the middleware does for a request, TakeAll and Reserve do without one.
func TestReserve(t *testing.T) {
	at := time.Unix(now, 0)
	l, ctx := newEngine(t, &at), t.Context()
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	c := ratelimit.Caller{Subject: "ann", Plan: plan, Kind: ratelimit.KindAPIKey, Also: []ratelimit.Charge{{Subject: "all", Plan: plan, Cost: 4}}}
	charges := []ratelimit.Charge{{Subject: "ann", Plan: plan, Cost: 1}, c.Also[0]}
	decisions := make([]ratelimit.Decision, 2)
	left := func(subject string) int64 {
		t.Helper()
		d, err := l.Peek(ctx, subject, plan)
		if err != nil {
			t.Fatal(err)
		}
		return d.Remaining()
	}
	reserve := func(counted bool) (*limit.Reservation, func(context.Context)) {
		t.Helper()
		if err := ratelimit.TakeAll(ctx, l, charges, decisions); err != nil {
			t.Fatal(err)
		}
		inner, giveBack := limit.Reserve(ctx, l, c, charges, decisions, counted)
		return limit.FromContext(inner), giveBack
	}

	r, giveBack := reserve(true)
	if d := r.Decision(); d.Remaining() != 6 || r.Caller().Subject != "all" {
		t.Errorf("%d left of %s, want 6 of all", d.Remaining(), r.Caller().Subject)
	}
	giveBack(ctx)
	if left("ann") != 10 || left("all") != 10 {
		t.Errorf("%d and %d left, want all given back", left("ann"), left("all"))
	}

	r, giveBack = reserve(true)
	if err := r.Settle(ctx, 3); err != nil {
		t.Error(err)
	}
	giveBack(ctx)
	if left("ann") != 7 || left("all") != 6 {
		t.Errorf("%d and %d left, want 7 and 6: a settled request is not given back", left("ann"), left("all"))
	}

	_, giveBack = reserve(false)
	giveBack(ctx)
	if left("ann") != 6 || left("all") != 2 {
		t.Errorf("%d and %d left, want 6 and 2: what was not counted is not given back", left("ann"), left("all"))
	}

	inner, _ := limit.Reserve(ctx, l, ratelimit.Caller{Subject: "ann"}, nil, nil, false)
	r = limit.FromContext(inner)
	if err := r.Settle(ctx, 3); err != nil || r.Decision().Outcome != 0 || r.Caller().Subject != "ann" {
		t.Errorf("without a decision: %v, %v, %v", r.Decision(), r.Caller(), err)
	}
}

// Without the middleware FromContext returns nil, and its methods can be called.
func TestNilReservation(t *testing.T) {
	r := limit.FromContext(t.Context())
	if d, c := r.Decision(), r.Caller(); d.Outcome != 0 || c.Subject != "" {
		t.Errorf("%v and %v, want the zero Decision and Caller", d, c)
	}
	if err := r.Settle(t.Context(), 1); !errors.Is(err, ratelimit.ErrInvalid) {
		t.Errorf("Settle: %v, want ErrInvalid", err)
	}
}
