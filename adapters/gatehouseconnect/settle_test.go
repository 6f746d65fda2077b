package gatehouseconnect_test

import (
	"context"
	"errors"
	"testing"

	"connectrpc.com/connect"

	"github.com/animalstore/gatehouse/adapters/gatehouseconnect"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A handler settles what a call costs. A settled call is not given back.
func TestSettle(t *testing.T) {
	everyClient(t, func(t *testing.T, c client) {
		engine, hundred := newClock().engine(t), ratelimit.MustPlan("hundred", ratelimit.Penalty{}, ratelimit.PerMinute(100))
		handler := func(ctx context.Context, _ string) error {
			if err := limit.FromContext(ctx).Settle(ctx, 7); err != nil {
				t.Error(err)
			}
			return errors.New("after the work")
		}
		ann := caller(ratelimit.Caller{Subject: "ann", Plan: hundred})
		a := c.call(t.Context(), start(t, handler, limited(t, engine, ann, gatehouseconnect.Options{Context: true, Refund: true})))
		expect(t, a, connect.CodeUnknown, "after the work")
		if n := used(t, engine, "ann", hundred); n != 7 {
			t.Errorf("%d units used, want 7", n)
		}
	})
}
