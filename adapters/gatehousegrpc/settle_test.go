package gatehousegrpc_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A handler settles what a call costs, for all subjects that cost as much as the call. A
// settled call is not given back.
func TestSettle(t *testing.T) {
	hundred := ratelimit.MustPlan("hundred", ratelimit.Penalty{}, ratelimit.PerMinute(100))
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		engine := newClock().engine(t)
		charged := ratelimit.Caller{Subject: "ann", Plan: hundred, Also: []ratelimit.Charge{{Subject: "all", Plan: two}, {Subject: "calls", Plan: two, Cost: 1}}}
		handler := func(ctx context.Context, _ string) (string, error) {
			r := limit.FromContext(ctx)
			if d := r.Decision(); d.Plan != two || d.States[0].Remaining != 1 || r.Caller().Subject != "all" {
				t.Errorf("the handler finds %+v for %s", d, r.Caller().Subject)
			}
			if err := r.Settle(ctx, 7); err != nil {
				t.Error(err)
			}
			return "", status.Error(codes.Internal, "after the work")
		}
		expect(t, call(t.Context(), start(t, handler, limited(t, engine, caller(charged), gatehousegrpc.Options{Context: true, Refund: true})...)), codes.Internal, "after the work")
		if n, calls := used(t, engine, "ann", hundred), used(t, engine, "calls", two); n != 7 || calls != 1 {
			t.Errorf("%d units used, and %d of calls; want 7 and 1", n, calls)
		}
	})
}

// With Context a call that fails unsettled is given back, and calls that were not counted
// have a reservation too.
func TestReservations(t *testing.T) {
	for name, c := range map[string]struct {
		limiter ratelimit.Limiter
		caller  ratelimit.Caller
		outcome ratelimit.Outcome
	}{
		"counted":          {nil, ratelimit.Caller{Subject: "ann", Plan: two}, ratelimit.Allowed},
		"unlimited":        {nil, ratelimit.Caller{Subject: "ann", Plan: ratelimit.UnlimitedPlan("staff")}, ratelimit.Allowed},
		"engine is down":   {down{}, ratelimit.Caller{Subject: "ann", Plan: two}, ratelimit.Allowed},
		"several, is down": {down{}, ratelimit.Caller{Subject: "ann", Plan: two, Also: []ratelimit.Charge{{Subject: "all", Plan: ratelimit.UnlimitedPlan("all")}}}, ratelimit.Allowed},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
				engine := newClock().engine(t)
				opts := gatehousegrpc.Options{Context: true, Refund: true, FailOpen: true}
				l := ratelimit.Limiter(engine)
				if c.limiter != nil {
					l, opts.Refund = c.limiter, false
				}
				handler := func(ctx context.Context, _ string) (string, error) {
					if r := limit.FromContext(ctx); r == nil || r.Decision().Outcome != c.outcome {
						t.Errorf("the handler finds %v", r)
					}
					return "", status.Error(codes.Internal, "bug")
				}
				expect(t, call(t.Context(), start(t, handler, limited(t, l, caller(c.caller), opts)...)), codes.Internal, "bug")
				if n := used(t, engine, "ann", two); n != 0 {
					t.Errorf("%d units used, want 0", n)
				}
			})
		})
	}
}
