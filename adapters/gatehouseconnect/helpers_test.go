package gatehouseconnect_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/animalstore/gatehouse/adapters/gatehouseconnect"
	"github.com/animalstore/gatehouse/ratelimit"
)

const (
	unaryMethod   = "/test.Echo/Unary"
	streamMethod  = "/test.Echo/Stream"
	collectMethod = "/test.Echo/Collect"
)

type text = wrapperspb.StringValue

// echo is a service with a unary method, a stream of two messages, and a stream of
// messages from the client, made by hand.
type echo func(ctx context.Context, text string) error

func same(context.Context, string) error { return nil }

// start serves echo behind the interceptors, over HTTP/1.1 and h2c, and inside the
// middlewares.
func start(t *testing.T, srv echo, interceptors []connect.Interceptor, around ...func(http.Handler) http.Handler) (url string) {
	t.Helper()
	opts := []connect.HandlerOption{connect.WithInterceptors(interceptors...), connect.WithIdempotency(connect.IdempotencyNoSideEffects)}
	mux := http.NewServeMux()
	mux.Handle(unaryMethod, connect.NewUnaryHandler(unaryMethod, func(ctx context.Context, r *connect.Request[text]) (*connect.Response[text], error) {
		return connect.NewResponse(r.Msg), srv(ctx, r.Msg.Value)
	}, opts...))
	mux.Handle(streamMethod, connect.NewServerStreamHandler(streamMethod, func(ctx context.Context, r *connect.Request[text], s *connect.ServerStream[text]) error {
		if err := s.Send(r.Msg); err != nil {
			return err
		}
		if err := srv(ctx, r.Msg.Value); err != nil {
			return err
		}
		return s.Send(r.Msg)
	}, opts...))
	mux.Handle(collectMethod, connect.NewClientStreamHandler(collectMethod, func(ctx context.Context, s *connect.ClientStream[text]) (*connect.Response[text], error) {
		for s.Receive() {
			if err := srv(ctx, s.Msg().Value); err != nil {
				return nil, err
			}
		}
		return connect.NewResponse(&text{}), s.Err()
	}, opts...))
	var handler http.Handler = mux
	for _, wrap := range around {
		handler = wrap(handler)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = protocols(true, true)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // of panics
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

func protocols(http1, h2c bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(http1)
	p.SetUnencryptedHTTP2(h2c)
	return p
}

// A client calls one of the methods in one of the protocols.
type client struct {
	method string
	http   *http.Client
	opts   []connect.ClientOption
	header http.Header // of each request
}

// An answer is what a client sees of one call.
type answer struct {
	err      error
	fields   http.Header // header, and the Meta of an error
	received int
}

func (c client) call(ctx context.Context, url string) (a answer) {
	rpc := connect.NewClient[text, text](c.http, url+c.method, c.opts...)
	req := connect.NewRequest(&text{Value: "hello"})
	for name, values := range c.header {
		req.Header()[name] = values
	}
	if c.method == unaryMethod {
		resp, err := rpc.CallUnary(ctx, req)
		if a.err = err; err == nil {
			a.received, a.fields = 1, resp.Header()
		}
	} else if s, err := rpc.CallServerStream(ctx, req); err != nil {
		a.err = err
	} else {
		for s.Receive() {
			a.received++
		}
		a.err, a.fields = s.Err(), s.ResponseHeader()
		_ = s.Close()
	}
	if e, ok := errors.AsType[*connect.Error](a.err); ok {
		a.fields = e.Meta()
	}
	return a
}

// field returns the only value of a field.
func (a answer) field(name string) string {
	if v := a.fields.Values(name); len(v) == 1 {
		return v[0]
	} else if len(v) > 1 {
		return "several: " + strings.Join(v, ", ")
	}
	return ""
}

func (a answer) retryDelay() time.Duration {
	return detail[*errdetails.RetryInfo](a.err).GetRetryDelay().AsDuration()
}

func (a answer) reason() string { return detail[*errdetails.ErrorInfo](a.err).GetReason() }

func detail[T any](err error) (found T) {
	if e, ok := errors.AsType[*connect.Error](err); ok {
		for _, d := range e.Details() {
			if message, err := d.Value(); err == nil {
				if m, ok := message.(T); ok {
					return m
				}
			}
		}
	}
	return found
}

// everyClient runs a test with each protocol, version of HTTP and kind of method.
func everyClient(t *testing.T, test func(*testing.T, client)) {
	for name, opts := range map[string][]connect.ClientOption{
		"Connect": nil, "Connect with GET": {connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)},
		"gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()},
	} {
		for _, h2c := range []bool{false, true} {
			if name == "gRPC" && !h2c {
				continue // needs HTTP/2
			}
			for _, method := range []string{unaryMethod, streamMethod} {
				version := map[bool]string{false: "HTTP/1.1", true: "h2c"}[h2c]
				t.Run(name+" "+version+" "+method[len("/test.Echo/"):], func(t *testing.T) {
					// A connection of an earlier test may be to a server that is gone,
					// and whose port another one has.
					transport := &http.Transport{Protocols: protocols(!h2c, h2c)}
					t.Cleanup(transport.CloseIdleConnections)
					test(t, client{method: method, http: &http.Client{Transport: transport}, opts: opts})
				})
			}
		}
	}
}

func limited(l ratelimit.Limiter, identify func(r *http.Request) (ratelimit.Caller, error), opts gatehouseconnect.Options) []connect.Interceptor {
	i := must(gatehouseconnect.New(l, identify, opts))
	return []connect.Interceptor{i}
}

func expect(t *testing.T, a answer, code connect.Code, message string) {
	t.Helper()
	e, _ := errors.AsType[*connect.Error](a.err)
	switch {
	case code == 0 && a.err != nil:
		t.Errorf("the call ended with %v, want success", a.err)
	case code == 0:
	case e == nil || e.Code() != code || message != "" && e.Message() != message:
		t.Errorf("the call ended with %v, want %v %q", a.err, code, message)
	}
}

// must returns v. It panics if what a test sets up fails.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
