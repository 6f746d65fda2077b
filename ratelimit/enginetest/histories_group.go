package enginetest

import (
	"context"
	"fmt"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// compareGroup charges some of the subjects together.
func (h *history) compareGroup(ctx context.Context) string {
	if _, ok := h.engine.Limiter.(engine.MultiTaker); !ok {
		return ""
	}
	charges := make([]ratelimit.Charge, 1+h.rand.IntN(3))
	text := "take all"
	for i, subject := range h.rand.Perm(3)[:len(charges)] {
		plan := h.plans[h.rand.IntN(2)]
		if h.rand.IntN(4) == 0 {
			plan = h.plans[h.rand.IntN(len(h.plans))]
		}
		charges[i] = ratelimit.Charge{Subject: string(rune('a' + subject)), Plan: plan, Cost: h.cost(plan)}
		text += fmt.Sprint(", ", charges[i].Subject, " ", charges[i].Cost, " ", plan)
	}
	h.log = append(h.log, text)
	want, got := make([]ratelimit.Decision, len(charges)), make([]ratelimit.Decision, len(charges))
	take := ratelimit.TakeAll
	if h.inOrder {
		take = engine.TakeInOrder
	}
	wantErr, err := take(ctx, h.model, charges, want), ratelimit.TakeAll(ctx, h.engine.Limiter, charges, got)
	if (err == nil) != (wantErr == nil) {
		return fmt.Sprintf("error: model %v, engine %v", wantErr, err)
	}
	for i := range want {
		if want[i].Allowed() {
			h.keep(admitted{charges[i].Subject, want[i], got[i]})
		}
		h.ends = append(h.ends, want[i].Reset())
		h.ends = h.ends[max(len(h.ends)-8, 0):]
	}
	return cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b }))
}
