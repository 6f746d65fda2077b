package gatehouseconnect_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"connectrpc.com/connect"

	"github.com/animalstore/gatehouse/adapters/gatehouseconnect"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// failedSignIns charges calls that end with unauthenticated.
func failedSignIns(_ *http.Request, err error) bool {
	return connect.CodeOf(err) == connect.CodeUnauthenticated
}

// ChargeIf is asked once, about the error of the handler, and what it does not charge is
// given back to all subjects.
func TestChargeIf(t *testing.T) {
	internal := connect.NewError(connect.CodeInternal, nil)
	for name, c := range map[string]struct {
		opts   gatehouseconnect.Options
		err    error
		panics bool
		used   int64
	}{
		"success":             {gatehouseconnect.Options{}, nil, false, 0},
		"a failed sign-in":    {gatehouseconnect.Options{}, connect.NewError(connect.CodeUnauthenticated, errors.New("wrong password")), false, 1},
		"not modified":        {gatehouseconnect.Options{}, connect.NewNotModifiedError(http.Header{"Etag": {`"1"`}}), false, 0},
		"an error of its own": {gatehouseconnect.Options{}, errors.New("disk full"), false, 0},
		"panic":               {gatehouseconnect.Options{}, internal, true, 0},
		"Context":             {gatehouseconnect.Options{Context: true}, nil, false, 0},
		"Shadow":              {gatehouseconnect.Options{Shadow: true}, nil, false, 0},
		"Refund, no fault":    {gatehouseconnect.Options{Refund: true}, connect.NewError(connect.CodeNotFound, nil), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			everyClient(t, func(t *testing.T, cl client) {
				engine, asked := newClock().engine(t), 0
				opts := c.opts
				opts.ChargeIf = func(r *http.Request, err error) bool {
					asked++
					if r.URL.Path != cl.method || !c.panics && !errors.Is(err, c.err) || connect.CodeOf(err) != connect.CodeOf(c.err) {
						t.Errorf("ChargeIf gets %s, %v; want %v", r.URL.Path, err, c.err)
					}
					if opts.Context && limit.FromContext(r.Context()) == nil {
						t.Error("the context of ChargeIf has no reservation")
					}
					return failedSignIns(r, err)
				}
				handler := func(context.Context, string) error {
					if n := used(t, engine, "ann", two); n != 1 {
						t.Errorf("%d units used while the call runs, want 1", n)
					}
					if c.panics {
						panic("bug")
					}
					return c.err
				}
				charged := ratelimit.Caller{Subject: "ann", Plan: two, Also: []ratelimit.Charge{{Subject: "all", Plan: two}}}
				a := cl.call(t.Context(), start(t, handler, limited(t, engine, caller(charged), opts)))
				if !c.panics && !opts.Shadow && a.field("X-RateLimit-Remaining") != "1" {
					t.Errorf("fields %v", a.fields)
				}
				if n, all := used(t, engine, "ann", two), used(t, engine, "all", two); n != c.used || all != c.used || asked != 1 {
					t.Errorf("%d and %d units used, want %d; asked %d times, want once", n, all, c.used, asked)
				}
			})
		})
	}
}
