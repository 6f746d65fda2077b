package gatehouseconnect_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/animalstore/gatehouse/adapters/gatehouseconnect"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/ratelimit"
)

type text = wrapperspb.StringValue

// echo is a service with a method of each kind, made by hand. Streams receive messages until
// that fails.
type echo func(ctx context.Context, text string) (string, error)

func same(_ context.Context, text string) (string, error) { return text, nil }

func (e echo) handler(opts ...connect.HandlerOption) http.Handler {
	mux := http.NewServeMux()
	unary := func(ctx context.Context, in *connect.Request[text]) (*connect.Response[text], error) {
		message, err := e(ctx, in.Msg.Value)
		return connect.NewResponse(&text{Value: message}), err
	}
	send := func(s interface{ Send(*text) error }, message string, err error) error {
		if err == nil || message != "" {
			if err := s.Send(&text{Value: message}); err != nil {
				return err
			}
		}
		return err
	}
	mux.Handle(contract.Unary, connect.NewUnaryHandler(contract.Unary, unary, opts...))
	mux.Handle(contract.ClientStream, connect.NewClientStreamHandler(contract.ClientStream, func(ctx context.Context, s *connect.ClientStream[text]) (*connect.Response[text], error) {
		for s.Receive() {
		}
		return unary(ctx, connect.NewRequest(s.Msg()))
	}, opts...))
	mux.Handle(contract.ServerStream, connect.NewServerStreamHandler(contract.ServerStream, func(ctx context.Context, in *connect.Request[text], s *connect.ServerStream[text]) error {
		message, err := e(ctx, in.Msg.Value)
		return send(s, message, err)
	}, opts...))
	mux.Handle(contract.BidiStream, connect.NewBidiStreamHandler(contract.BidiStream, func(ctx context.Context, s *connect.BidiStream[text, text]) error {
		for _, err := s.Receive(); err == nil; _, err = s.Receive() {
		}
		message, err := e(ctx, "")
		return send(s, message, err)
	}, opts...))
	return mux
}

// start serves echo behind the interceptors, and inside the middlewares.
func start(t *testing.T, srv echo, interceptors []connect.Interceptor, around ...middleware.Middleware) (url string) {
	t.Helper()
	return serve(t, middleware.Chain(srv.handler(connect.WithRecover(recovered), connect.WithInterceptors(interceptors...),
		connect.WithIdempotency(connect.IdempotencyNoSideEffects)), around...))
}

// serve serves a handler over HTTP/1.1 and h2c.
func serve(t *testing.T, handler http.Handler) (url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = protocols(true, true)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // of panics
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// recovered answers a panic.
func recovered(context.Context, connect.Spec, http.Header, any) error {
	return connect.NewError(connect.CodeInternal, errors.New("recovered"))
}

func protocols(http1, h2c bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(http1)
	p.SetUnencryptedHTTP2(h2c)
	return p
}

// A client calls one of the methods in one of the protocols.
type client struct {
	name   string
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

func (c client) call(ctx context.Context, url string) answer { return c.send(ctx, url, "hello") }

// send sends a text.
func (c client) send(ctx context.Context, url, message string) (a answer) {
	rpc := connect.NewClient[text, text](c.http, url+c.method, c.opts...)
	req := connect.NewRequest(&text{Value: message})
	for name, values := range c.header {
		req.Header()[name] = values
	}
	if c.method == contract.Unary {
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

// clients are those of each protocol, version of HTTP and kind of method.
func clients(t *testing.T) (all []client) {
	t.Helper()
	for name, opts := range map[string][]connect.ClientOption{
		"Connect": nil, "Connect with GET": {connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)},
		"gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()},
	} {
		for version, h2c := range map[string]bool{"HTTP/1.1": false, "h2c": true} {
			for _, method := range []string{contract.Unary, contract.ServerStream} {
				if name == "gRPC" && !h2c || name == "Connect with GET" && method == contract.ServerStream {
					continue // need HTTP/2, or send a POST
				}
				// A connection of an earlier test may be to a server that is gone,
				// and whose port another one has.
				transport := &http.Transport{Protocols: protocols(!h2c, h2c)}
				t.Cleanup(transport.CloseIdleConnections)
				all = append(all, client{name: name + " " + version + " " + method, method: method, http: &http.Client{Transport: transport}, opts: opts})
			}
		}
	}
	return all
}

// everyClient runs a test with each client.
func everyClient(t *testing.T, test func(*testing.T, client)) {
	for _, c := range clients(t) {
		t.Run(c.name, func(t *testing.T) { test(t, c) })
	}
}

func limited(l ratelimit.Limiter, identify func(r *http.Request) (ratelimit.Caller, error), opts gatehouseconnect.Options) []connect.Interceptor {
	i := testcheck.Must(gatehouseconnect.New(l, identify, opts))
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
