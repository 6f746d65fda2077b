package gatehousegrpc_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
)

type message = wrapperspb.StringValue

// echo is a service with a method of each kind, made by hand. Streams receive messages until
// that fails.
type echo func(ctx context.Context, text string) (string, error)

func same(_ context.Context, text string) (string, error) { return text, nil }

func (e echo) desc() *grpc.ServiceDesc {
	name := func(method string) string { return method[strings.LastIndexByte(method, '/')+1:] }
	unary := func(ctx context.Context, req any) (any, error) {
		text, err := e(ctx, req.(*message).Value)
		return wrapperspb.String(text), err
	}
	desc := &grpc.ServiceDesc{ServiceName: "test.Kinds", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: name(contract.Unary),
		Handler: func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			in := new(message)
			if err := decode(in); err != nil {
				return nil, err
			}
			return interceptor(ctx, in, &grpc.UnaryServerInfo{FullMethod: contract.Unary}, unary)
		},
	}}}
	for _, s := range []grpc.StreamDesc{
		{StreamName: name(contract.BidiStream), ClientStreams: true, ServerStreams: true},
		{StreamName: name(contract.ClientStream), ClientStreams: true},
		{StreamName: name(contract.ServerStream), ServerStreams: true},
	} {
		s.Handler = func(_ any, ss grpc.ServerStream) error {
			in := new(message)
			for ss.RecvMsg(in) == nil && s.ClientStreams {
			}
			text, err := e(ss.Context(), in.Value)
			if err == nil || s.ServerStreams && text != "" {
				if err := ss.SendMsg(wrapperspb.String(text)); err != nil {
					return err
				}
			}
			return err
		}
		desc.Streams = append(desc.Streams, s)
	}
	return desc
}

// start serves echo behind the interceptors, and returns a client of it.
func start(t *testing.T, srv echo, opts ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	return dial(t, serve(t, srv, opts...))
}

func serve(t *testing.T, srv echo, opts ...grpc.ServerOption) (addr string) {
	t.Helper()
	listener := testcheck.Must(net.Listen("tcp", "127.0.0.1:0"))
	server := grpc.NewServer(opts...)
	server.RegisterService(srv.desc(), nil)
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Stop(); done.Wait() })
	return listener.Addr().String()
}

func dial(t *testing.T, addr string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn := testcheck.Must(grpc.NewClient(addr, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// limited returns both interceptors of a limiter.
func limited(t *testing.T, l ratelimit.Limiter, identify func(r *http.Request) (ratelimit.Caller, error), opts gatehousegrpc.Options) []grpc.ServerOption {
	t.Helper()
	unary, stream, err := gatehousegrpc.New(l, identify, opts)
	testcheck.NoError(t, err)
	return interceptors(unary, stream)
}

func interceptors(unary grpc.UnaryServerInterceptor, stream grpc.StreamServerInterceptor) []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream)}
}

// An answer is what a client sees of one call.
type answer struct {
	status          *status.Status
	header, trailer metadata.MD
}

func (a answer) field(name string) string {
	if v := append(a.header.Get(name), a.trailer.Get(name)...); len(v) == 1 {
		return v[0]
	} else if len(v) > 1 {
		return "several values"
	}
	return ""
}

// retryDelay returns the RetryInfo, or 0.
func (a answer) retryDelay() time.Duration {
	if info := detail[*errdetails.RetryInfo](a.status); info != nil {
		return info.RetryDelay.AsDuration()
	}
	return 0
}

func (a answer) reason() string { return detail[*errdetails.ErrorInfo](a.status).GetReason() }

func detail[T any](st *status.Status) (found T) {
	for _, d := range st.Details() {
		if d, ok := d.(T); ok {
			return d
		}
	}
	return found
}

func call(ctx context.Context, conn *grpc.ClientConn, text string) (a answer) {
	in, out := wrapperspb.String(text), new(message)
	err := conn.Invoke(ctx, contract.Unary, in, out, grpc.Header(&a.header), grpc.Trailer(&a.trailer))
	a.status = status.Convert(err)
	return a
}

// stream opens a stream, sends a message, and reads until the end.
func stream(ctx context.Context, conn *grpc.ClientConn, text string) (a answer) {
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, contract.BidiStream)
	if err == nil {
		_ = s.SendMsg(wrapperspb.String(text)) // if it fails, RecvMsg has the error
		_ = s.CloseSend()
		for err == nil {
			err = s.RecvMsg(new(message))
		}
		a.header, _ = s.Header()
		a.trailer = s.Trailer()
	}
	if err == io.EOF {
		err = nil
	}
	a.status = status.Convert(err)
	return a
}

// both runs a test with a unary call and with a stream of one message.
func both(t *testing.T, test func(t *testing.T, call func(context.Context, *grpc.ClientConn, string) answer)) {
	t.Run("unary", func(t *testing.T) { test(t, call) })
	t.Run("stream", func(t *testing.T) { test(t, stream) })
}

func expect(t *testing.T, a answer, code codes.Code, message string) {
	t.Helper()
	if a.status.Code() != code || message != "" && a.status.Message() != message {
		t.Errorf("the call ended with %v %q, want %v %q", a.status.Code(), a.status.Message(), code, message)
	}
}
