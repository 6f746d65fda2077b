package gatehousegrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// recoverUnary and recoverStream answer a panic, as a service does outside of the limit.
func recoverUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (_ any, err error) {
	defer recovered(&err)
	return h(ctx, req)
}

func recoverStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
	defer recovered(&err)
	return h(srv, ss)
}

func recovered(err *error) {
	if recover() != nil {
		*err = status.Error(codes.Internal, "recovered")
	}
}

// Faults of the server are given back, by the status that the client gets.
func TestNotServerError(t *testing.T) {
	for _, c := range []struct {
		err     error
		charged bool
	}{
		{nil, true},
		{status.Error(codes.NotFound, ""), true},
		{status.Error(codes.ResourceExhausted, ""), true}, // an inner limit
		{status.Error(codes.Canceled, ""), true},
		{status.Error(codes.Unimplemented, ""), false},
		{status.Error(codes.Internal, ""), false},
		{errors.New("disk full"), false},
		{fmt.Errorf("query: %w", context.Canceled), true},          // the client gets CANCELLED
		{fmt.Errorf("query: %w", context.DeadlineExceeded), false}, // and DEADLINE_EXCEEDED
	} {
		if got := gatehousegrpc.NotServerError(nil, c.err); got != c.charged {
			t.Errorf("%v: charged: %t, want %t", c.err, got, c.charged)
		}
	}
}

// A client cannot avoid a charge by cancelling the call.
func TestAbandonedCallsStayCharged(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		engine, ended := contract.NewClock().Engine(t), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		handler := func(ctx context.Context, _ string) (string, error) {
			cancel()
			<-ctx.Done()
			return "", status.Error(codes.Internal, "because of the context")
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
			limited(t, engine, contract.Caller(ratelimit.Caller{Subject: "ann", Plan: contract.Two}), gatehousegrpc.Options{ChargeIf: gatehousegrpc.NotServerError})...)
		if a := call(ctx, start(t, handler, opts...)); a.status.Code() == codes.OK {
			t.Error("the client sees a success")
		}
		<-ended
		if n := contract.Used(t, engine, "ann", contract.Two); n != 1 {
			t.Errorf("%d units used, want 1", n)
		}
	})
}

// A serverStream is one whose messages fare as the errors say.
type serverStream struct {
	grpc.ServerStream
	ctx           context.Context
	receive, send error
}

func (s serverStream) Context() context.Context  { return s.ctx }
func (serverStream) SetHeader(metadata.MD) error { return nil }
func (serverStream) SetTrailer(metadata.MD)      {}
func (s serverStream) SendMsg(any) error         { return s.send }
func (s serverStream) RecvMsg(any) error         { return s.receive }

// A stream stays charged whatever its handler makes of a message that could not be received
// or sent.
func TestRefundOfBrokenStreams(t *testing.T) {
	broken := status.Error(codes.Internal, "")
	for name, c := range map[string]struct {
		stream serverStream
		used   int64
	}{
		"all well":       {serverStream{}, 0},
		"end":            {serverStream{receive: io.EOF}, 0},
		"cannot receive": {serverStream{receive: broken}, 1},
		"cannot send":    {serverStream{send: broken}, 1},
	} {
		engine := contract.NewClock().Engine(t)
		_, limit, err := gatehousegrpc.New(engine, contract.Caller(ratelimit.Caller{Subject: "ann", Plan: contract.Two}), gatehousegrpc.Options{ChargeIf: gatehousegrpc.NotServerError})
		if err != nil {
			t.Fatal(err)
		}
		c.stream.ctx = t.Context()
		_ = limit(nil, c.stream, &grpc.StreamServerInfo{FullMethod: streamMethod}, func(_ any, s grpc.ServerStream) error {
			if s.RecvMsg(nil) != c.stream.receive || s.SendMsg(nil) != c.stream.send {
				t.Errorf("%s: the handler gets other errors", name)
			}
			return errors.New("disk full")
		})
		if n := contract.Used(t, engine, "ann", contract.Two); n != c.used {
			t.Errorf("%s: %d units used, want %d", name, n, c.used)
		}
	}
}

// ChargeIf is asked once, about the error of the handler, and what it does not charge is
// given back to all subjects.
func TestChargeIf(t *testing.T) {
	errWrong := status.Error(codes.Unauthenticated, "wrong password")
	for name, c := range map[string]struct {
		opts gatehousegrpc.Options
		err  error      // nil: the handler panics
		code codes.Code // that ChargeIf sees
		used int64
	}{
		"a failed sign-in":    {gatehousegrpc.Options{}, errWrong, codes.Unauthenticated, 1},
		"Context":             {gatehousegrpc.Options{Context: true}, errWrong, codes.Unauthenticated, 1},
		"Shadow":              {gatehousegrpc.Options{Shadow: true}, errWrong, codes.Unauthenticated, 1},
		"an error of its own": {gatehousegrpc.Options{Context: true}, io.ErrUnexpectedEOF, codes.Unknown, 0},
		"panic":               {gatehousegrpc.Options{}, nil, codes.Internal, 0},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
				engine, asked := contract.NewClock().Engine(t), 0
				opts := c.opts
				opts.ChargeIf = func(r *http.Request, err error) bool {
					asked++
					if status.Code(err) != c.code || c.err != nil && !errors.Is(err, c.err) || r.URL.Path != unaryMethod && r.URL.Path != streamMethod {
						t.Errorf("ChargeIf gets %s, %v; want %v, %v", r.URL.Path, err, c.code, c.err)
					}
					if opts.Context && limit.FromContext(r.Context()) == nil {
						t.Error("the context of ChargeIf has no reservation")
					}
					return status.Code(err) == codes.Unauthenticated
				}
				handler := func(ctx context.Context, _ string) (string, error) {
					if n := contract.Used(t, engine, "ann", contract.Two); n != 1 || opts.Context != (limit.FromContext(ctx) != nil) {
						t.Errorf("%d units used while the call runs, want 1; a reservation: %t", n, limit.FromContext(ctx) != nil)
					}
					if c.err == nil {
						panic("bug")
					}
					return "", c.err
				}
				charged := ratelimit.Caller{Subject: "ann", Plan: contract.Two, Also: []ratelimit.Charge{
					{Subject: "all", Plan: contract.Two}, {Subject: "staff", Plan: ratelimit.UnlimitedPlan("staff")},
				}}
				server := append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(recoverUnary), grpc.ChainStreamInterceptor(recoverStream)},
					limited(t, engine, contract.Caller(charged), opts)...)
				a := call(t.Context(), start(t, handler, server...))
				if want := map[bool]string{false: "1", true: ""}[opts.Shadow]; a.field("x-ratelimit-remaining") != want {
					t.Errorf("header %v, trailer %v, want %s left", a.header, a.trailer, want)
				}
				if n, all := contract.Used(t, engine, "ann", contract.Two), contract.Used(t, engine, "all", contract.Two); n != c.used || all != c.used || asked != 1 {
					t.Errorf("%d and %d units used, want %d; asked %d times, want once", n, all, c.used, asked)
				}
			})
		})
	}
}

// The retry policy of a client that was not written for this package.
const retries = `{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 3, "initialBackoff": "3600s", "maxBackoff": "3600s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}`

// A client with a retry policy waits as long as the server says, instead of its own
// backoff of an hour, and is admitted.
func TestRetryPolicyWaits(t *testing.T) {
	at := contract.NewClock()
	at.Advance(17*time.Second - 20*time.Millisecond) // before the end of the minute
	one := ratelimit.MustPlan("one", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	var decisions atomic.Int32
	opts := gatehousegrpc.Options{Observe: func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, _ error) {
		decisions.Add(1)
		at.Advance(d.RetryAfter) // while the client waits
	}}
	addr := serve(t, same, limited(t, at.Engine(t), contract.Caller(ratelimit.Caller{Subject: "ann", Plan: one}), opts)...)
	conn := dial(t, addr, grpc.WithDefaultServiceConfig(retries))
	expect(t, call(t.Context(), conn), codes.OK, "")
	expect(t, call(t.Context(), conn), codes.OK, "")
	if n := decisions.Load(); n != 3 {
		t.Errorf("%d decisions, want 3: one call, one refusal, one retry", n)
	}
}

// A client with a retry policy does not hold a call up for minutes, nor is it banned.
func TestRetryPolicyDoesNotWaitForLong(t *testing.T) {
	day := ratelimit.MustPlan("day", ratelimit.DefaultPenalty(), ratelimit.PerDay(1))
	addr := serve(t, same, limited(t, contract.NewClock().Engine(t), contract.Caller(ratelimit.Caller{Subject: "ann", Plan: day}), gatehousegrpc.Options{})...)
	conn := dial(t, addr, grpc.WithDefaultServiceConfig(retries))
	expect(t, call(t.Context(), conn), codes.OK, "")
	a := call(t.Context(), conn)
	expect(t, a, codes.ResourceExhausted, "")
	if a.field("grpc-retry-pushback-ms") != "-1" {
		t.Errorf("trailer %v", a.trailer)
	}
}

// A call that was admitted and fails is retried as without the interceptor.
func TestFailedCallsAreRetried(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		at := contract.NewClock()
		var calls atomic.Int32
		failing := func(ctx context.Context, text string) (string, error) {
			if calls.Add(1) == 1 {
				_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "1"))
				return "", status.Error(codes.Unavailable, "again")
			}
			return text, nil
		}
		engine := at.Engine(t)
		addr := serve(t, failing, limited(t, engine, contract.Caller(ratelimit.Caller{Subject: "ann", Plan: contract.Two}), gatehousegrpc.Options{ChargeIf: gatehousegrpc.NotServerError})...)
		conn := dial(t, addr, grpc.WithDefaultServiceConfig(retries))
		expect(t, call(t.Context(), conn), codes.OK, "")
		if n := calls.Load(); n != 2 {
			t.Errorf("the handler was called %d times, want 2", n)
		}
		if n := contract.Used(t, engine, "ann", contract.Two); n != 1 {
			t.Errorf("%d units used, want 1: the failed attempt is given back", n)
		}
	})
}
