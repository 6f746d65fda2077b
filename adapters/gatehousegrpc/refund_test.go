package gatehousegrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
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

// Faults of the server are given back to all subjects, and nothing else.
func TestRefund(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		panics   bool
		refunded bool
	}{
		"success":               {nil, false, false},
		"not found":             {status.Error(codes.NotFound, ""), false, false},
		"an inner limit":        {status.Error(codes.ResourceExhausted, ""), false, false},
		"cancelled":             {status.Error(codes.Canceled, ""), false, false},
		"not implemented":       {status.Error(codes.Unimplemented, ""), false, true},
		"internal":              {status.Error(codes.Internal, ""), false, true},
		"unavailable":           {status.Error(codes.Unavailable, ""), false, true},
		"data loss":             {status.Error(codes.DataLoss, ""), false, true},
		"an error of its own":   {errors.New("disk full"), false, true},
		"context.Canceled":      {fmt.Errorf("query: %w", context.Canceled), false, false},        // the client gets CANCELLED
		"a deadline of its own": {fmt.Errorf("query: %w", context.DeadlineExceeded), false, true}, // and DEADLINE_EXCEEDED
		"a backend's timeout":   {status.Error(codes.DeadlineExceeded, ""), false, true},
		"panic":                 {nil, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
				engine := newClock().engine(t)
				charged := ratelimit.Caller{Subject: "ann", Plan: two, Also: []ratelimit.Charge{
					{Subject: "all", Plan: two}, {Subject: "staff", Plan: ratelimit.UnlimitedPlan("staff")},
				}}
				handler := func(context.Context, string) (string, error) {
					if c.panics {
						panic("bug")
					}
					return "", c.err
				}
				opts := append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(recoverUnary), grpc.ChainStreamInterceptor(recoverStream)},
					limited(t, engine, caller(charged), gatehousegrpc.Options{Refund: true})...)
				a := call(t.Context(), start(t, handler, opts...))
				if c.panics {
					expect(t, a, codes.Internal, "recovered")
				}
				if a.field("x-ratelimit-remaining") != "1" {
					t.Errorf("header %v, trailer %v", a.header, a.trailer)
				}
				want := int64(1)
				if c.refunded {
					want = 0
				}
				for _, subject := range []string{"ann", "all"} {
					if n := used(t, engine, subject, two); n != want {
						t.Errorf("%s has used %d units, want %d", subject, n, want)
					}
				}
			})
		})
	}
}

// whenReached makes calls whose deadlines are further and further away, until one reaches its
// handler, which a short deadline may not allow on a busy machine. Call returns a channel that
// is closed when the handler has returned, and what is around it.
func whenReached(t *testing.T, call func(deadline time.Duration) (ended <-chan struct{})) {
	t.Helper()
	for d := 100 * time.Millisecond; d < time.Minute; d *= 4 {
		select {
		case <-call(d):
			return
		case <-time.After(10 * time.Second):
		}
	}
	t.Fatal("no call has reached its handler")
}

// A client cannot avoid a charge by cancelling the call or by a short deadline.
func TestAbandonedCallsStayCharged(t *testing.T) {
	for _, name := range []string{"cancelled", "deadline"} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
				var engine *memory.Limiter
				whenReached(t, func(deadline time.Duration) <-chan struct{} {
					engine = newClock().engine(t)
					ctx, cancel := context.WithCancel(t.Context())
					if name == "deadline" {
						ctx, cancel = context.WithTimeout(t.Context(), deadline)
					}
					defer cancel()
					ended, reached := make(chan struct{}), false
					handler := func(ctx context.Context, _ string) (string, error) {
						if reached = true; name == "cancelled" {
							cancel()
						}
						<-ctx.Done()
						return "", status.Error(codes.Internal, "because of the context")
					}
					end := func() {
						if reached {
							close(ended)
						}
					}
					after := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
						defer end()
						return h(ctx, req)
					}
					afterStream := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
						defer end()
						return h(srv, ss)
					}
					opts := append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(after), grpc.ChainStreamInterceptor(afterStream)},
						limited(t, engine, caller(ratelimit.Caller{Subject: "ann", Plan: two}), gatehousegrpc.Options{Refund: true})...)
					if a := call(ctx, start(t, handler, opts...)); a.status.Code() == codes.OK {
						t.Error("the client sees a success")
					}
					return ended
				})
				if n := used(t, engine, "ann", two); n != 1 {
					t.Errorf("%d units used, want 1", n)
				}
			})
		})
	}
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
		engine := newClock().engine(t)
		_, limit, err := gatehousegrpc.New(engine, caller(ratelimit.Caller{Subject: "ann", Plan: two}), gatehousegrpc.Options{Refund: true})
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
		if n := used(t, engine, "ann", two); n != c.used {
			t.Errorf("%s: %d units used, want %d", name, n, c.used)
		}
	}
}

// failedSignIns charges calls that end with UNAUTHENTICATED.
func failedSignIns(_ *http.Request, err error) bool {
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
					opts.ChargeIf = func(r *http.Request, err error) bool {
						asked++
						if status.Code(err) != c.code || c.err != nil && !errors.Is(err, c.err) || r.URL.Path != unaryMethod && r.URL.Path != streamMethod {
							t.Errorf("ChargeIf gets %s, %v; want %v, %v", r.URL.Path, err, c.code, c.err)
						}
						if opts.Context && limit.FromContext(r.Context()) == nil {
							t.Error("the context of ChargeIf has no reservation")
						}
						return failedSignIns(r, err)
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
