package gatehousegrpc_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// failedSignIns charges calls that end with UNAUTHENTICATED.
func failedSignIns(_ context.Context, _ string, err error) bool {
	return status.Code(err) == codes.Unauthenticated
}

// ChargeIf is asked once, about the error of the handler, and what it does not charge is
// given back to all subjects.
func TestChargeIf(t *testing.T) {
	errWrong := status.Error(codes.Unauthenticated, "wrong password")
	for name, c := range map[string]struct {
		err    error
		panics bool
		code   codes.Code // that ChargeIf sees
		used   int64
	}{
		"success":             {nil, false, codes.OK, 0},
		"a failed sign-in":    {errWrong, false, codes.Unauthenticated, 1},
		"not found":           {status.Error(codes.NotFound, ""), false, codes.NotFound, 0},
		"an error of its own": {io.ErrUnexpectedEOF, false, codes.Unknown, 0},
		"panic":               {nil, true, codes.Internal, 0},
	} {
		for mode, opts := range map[string]gatehousegrpc.Options{"plain": {}, "Context": {Context: true}, "Shadow": {Shadow: true}} {
			t.Run(name+", "+mode, func(t *testing.T) {
				both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
					engine, asked := newClock().engine(t), 0
					opts.ChargeIf = func(ctx context.Context, method string, err error) bool {
						asked++
						if status.Code(err) != c.code || c.err != nil && !errors.Is(err, c.err) || method != unaryMethod && method != streamMethod {
							t.Errorf("ChargeIf gets %s, %v; want %v, %v", method, err, c.code, c.err)
						}
						if opts.Context && limit.FromContext(ctx) == nil {
							t.Error("the context of ChargeIf has no reservation")
						}
						return failedSignIns(ctx, method, err)
					}
					handler := func(context.Context, string) (string, error) {
						if c.panics {
							panic("bug")
						}
						if n := used(t, engine, "ann", two); n != 1 {
							t.Errorf("%d units used while the call runs, want 1", n)
						}
						return "", c.err
					}
					charged := ratelimit.Caller{Subject: "ann", Plan: two, Also: []ratelimit.Charge{{Subject: "all", Plan: two}}}
					server := append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(recoverUnary), grpc.ChainStreamInterceptor(recoverStream)},
						limited(t, engine, caller(charged), opts)...)
					a := call(t.Context(), start(t, handler, server...))
					if want := map[bool]string{false: "1", true: ""}[opts.Shadow]; a.field("x-ratelimit-remaining") != want {
						t.Errorf("header %v, trailer %v, want %s left", a.header, a.trailer, want)
					}
					if n, all := used(t, engine, "ann", two), used(t, engine, "all", two); n != c.used || all != c.used || asked != 1 {
						t.Errorf("%d and %d units used, want %d; asked %d times, want once", n, all, c.used, asked)
					}
				})
			})
		}
	}
}

// Failed sign-ins use up the limit, and those that succeed do not.
func TestChargeIfLimits(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		var err error
		handler := func(context.Context, string) (string, error) { return "", err }
		conn := start(t, handler, limited(t, newClock().engine(t), caller(ratelimit.Caller{Subject: "ann", Plan: two}), gatehousegrpc.Options{ChargeIf: failedSignIns})...)
		wrong := status.Error(codes.Unauthenticated, "wrong password")
		for _, want := range []codes.Code{codes.OK, codes.Unauthenticated, codes.OK, codes.OK, codes.Unauthenticated, codes.ResourceExhausted} {
			if err = nil; want == codes.Unauthenticated {
				err = wrong
			}
			expect(t, call(t.Context(), conn), want, "")
		}
	})
}

// What Refund gives back is given back whatever ChargeIf says, and a settled call stays
// as it was settled.
func TestChargeIfBesideRefundAndSettle(t *testing.T) {
	never := func(context.Context, string, error) bool { return false }
	always := func(context.Context, string, error) bool { return true }
	for name, c := range map[string]struct {
		opts   gatehousegrpc.Options
		err    error
		settle int64
		used   int64
	}{
		"Refund first":                {gatehousegrpc.Options{Refund: true, ChargeIf: always}, status.Error(codes.Internal, ""), -1, 0},
		"Refund is not set":           {gatehousegrpc.Options{ChargeIf: always}, status.Error(codes.Internal, ""), -1, 1},
		"no fault, charged":           {gatehousegrpc.Options{Refund: true, ChargeIf: always}, status.Error(codes.NotFound, ""), -1, 1},
		"no fault, not charged":       {gatehousegrpc.Options{Refund: true, ChargeIf: never}, status.Error(codes.NotFound, ""), -1, 0},
		"settled":                     {gatehousegrpc.Options{Context: true, ChargeIf: never}, nil, 2, 2},
		"settled at nothing, charged": {gatehousegrpc.Options{Context: true, ChargeIf: always}, nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
				engine := newClock().engine(t)
				handler := func(ctx context.Context, _ string) (string, error) {
					if c.settle >= 0 {
						if err := limit.FromContext(ctx).Settle(ctx, c.settle); err != nil {
							t.Error(err)
						}
					}
					return "", c.err
				}
				conn := start(t, handler, limited(t, engine, caller(ratelimit.Caller{Subject: "ann", Plan: two}), c.opts)...)
				expect(t, call(t.Context(), conn), status.Code(c.err), "")
				if n := used(t, engine, "ann", two); n != c.used {
					t.Errorf("%d units used, want %d", n, c.used)
				}
			})
		})
	}
}

// A client cannot avoid a charge by cancelling the call or by a short deadline.
func TestChargeIfOfAbandonedCalls(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		engine := newClock().engine(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan struct{})
		handler := func(ctx context.Context, _ string) (string, error) {
			cancel()
			<-ctx.Done()
			return "", nil
		}
		after := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			defer close(ended)
			return h(ctx, req)
		}
		afterStream := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			defer close(ended)
			return h(srv, ss)
		}
		opts := append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(after), grpc.ChainStreamInterceptor(afterStream)},
			limited(t, engine, caller(ratelimit.Caller{Subject: "ann", Plan: two}), gatehousegrpc.Options{ChargeIf: failedSignIns})...)
		expect(t, call(ctx, start(t, handler, opts...)), codes.Canceled, "")
		<-ended
		if n := used(t, engine, "ann", two); n != 1 {
			t.Errorf("cancelled: %d units used, want 1", n)
		}
	})
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		engine := newClock().engine(t)
		handler := func(context.Context, string) (string, error) { return "", context.DeadlineExceeded }
		conn := start(t, handler, limited(t, engine, caller(ratelimit.Caller{Subject: "ann", Plan: two}), gatehousegrpc.Options{ChargeIf: failedSignIns})...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		expect(t, call(ctx, conn), codes.DeadlineExceeded, "")
		if n := used(t, engine, "ann", two); n != 1 {
			t.Errorf("deadline exceeded: %d units used, want 1", n)
		}
	})
}
