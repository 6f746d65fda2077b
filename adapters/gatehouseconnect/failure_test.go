package gatehouseconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/animalstore/gatehouse/adapters/gatehouseconnect"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

func TestIdentifyFails(t *testing.T) {
	missing := apierror.New(http.StatusNotFound, "tenant_not_found", "There is no tenant with this name.")
	for name, c := range map[string]struct {
		err     error
		code    connect.Code
		message string
	}{
		"a public error":  {fmt.Errorf("lookup: %w", missing), connect.CodeNotFound, "There is no tenant with this name."},
		"of Connect":      {connect.NewError(connect.CodeFailedPrecondition, errors.New("sign up first")), connect.CodeFailedPrecondition, "sign up first"},
		"a private error": {errors.New("secret-host does not answer"), connect.CodeInternal, "The service failed to answer this request."},
		"without a code":  {connect.NewError(0, errors.New("secret-host")), connect.CodeInternal, "The service failed to answer this request."},
		"a nil Error":     {fmt.Errorf("secret-host: %w", (*connect.Error)(nil)), connect.CodeInternal, "The service failed to answer this request."},
	} {
		t.Run(name, func(t *testing.T) {
			everyClient(t, func(t *testing.T, cl client) {
				errs, logs := contract.Logged()
				identify := func(r *http.Request) (ratelimit.Caller, error) {
					if r.URL.Path != cl.method || clientip.FromRemoteAddr().Addr(r).String() != "127.0.0.1" || r.Header.Get("X-Tenant") != "acme" {
						t.Errorf("identify gets %+v", r)
					}
					return ratelimit.Caller{}, c.err
				}
				cl.header = http.Header{"X-Tenant": {"acme"}}
				a := cl.call(t.Context(), start(t, same, limited(contract.NewClock().Engine(t), identify, gatehouseconnect.Options{Errors: errs})))
				expect(t, a, c.code, c.message)
				// A client would take a RetryInfo of nothing for an invitation.
				info, failure := detail[*errdetails.RetryInfo](a.err), detail[*errdetails.QuotaFailure](a.err)
				if info != nil || failure != nil {
					t.Errorf("RetryInfo %v, QuotaFailure %v, want none", info, failure)
				}
				if c.code == connect.CodeInternal && !strings.Contains(logs.Text(), "secret-host") {
					t.Errorf("the log has %q", logs.Text())
				}
			})
		})
	}
}

// Faults of the server are given back, by the code that the client gets.
func TestNotServerError(t *testing.T) {
	for _, c := range []struct {
		err     error
		charged bool
	}{
		{nil, true},
		{connect.NewError(connect.CodeNotFound, nil), true},
		{connect.NewNotModifiedError(http.Header{"Etag": {`"1"`}}), true},
		{connect.NewError(connect.CodeResourceExhausted, nil), true}, // an inner limit
		{connect.NewError(connect.CodeInternal, nil), false},
		{connect.NewError(connect.CodeDeadlineExceeded, nil), false}, // a backend's
		{errors.New("disk full"), false},
		{fmt.Errorf("query: %w", context.Canceled), true},          // the client gets canceled
		{fmt.Errorf("query: %w", context.DeadlineExceeded), false}, // and deadline_exceeded
	} {
		if got := gatehouseconnect.NotServerError(nil, c.err); got != c.charged {
			t.Errorf("%v: charged: %t, want %t", c.err, got, c.charged)
		}
	}
}

// A client cannot avoid a charge by cancelling the call.
func TestAbandonedCallsStayCharged(t *testing.T) {
	everyClient(t, func(t *testing.T, c client) {
		engine, ended := contract.NewClock().Engine(t), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		handler := func(ctx context.Context, _ string) error {
			cancel()
			<-ctx.Done()
			return errors.New("because of the context")
		}
		after := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				next.ServeHTTP(w, r)
			})
		}
		url := start(t, handler, limited(engine, contract.Caller(ratelimit.Caller{Subject: "ann", Plan: contract.Two}),
			gatehouseconnect.Options{ChargeIf: gatehouseconnect.NotServerError}), after)
		if a := c.call(ctx, url); a.err == nil {
			t.Error("the client sees a success")
		}
		<-ended
		if n := contract.Used(t, engine, "ann", contract.Two); n != 1 {
			t.Errorf("%d units used, want 1", n)
		}
	})
}

// What a client can cause is not given back, such as a malformed message at the end of a
// stream: connect-go ends these streams with internal or unimplemented.
func TestFaultsOfTheClientStayCharged(t *testing.T) {
	const hello = "\x00\x00\x00\x00\x07\x0a\x05hello"
	for name, c := range map[string]struct{ method, body string }{
		"an incomplete message":     {collectMethod, hello + "\x00\x00\x00\x00\x07\x0a"},
		"an incomplete prefix":      {collectMethod, hello + "\x00"},
		"compression not announced": {collectMethod, hello + "\x01\x00\x00\x00\x01x"},
		"two messages for one":      {streamMethod, hello + hello},
		"one message and more":      {streamMethod, hello + "\x00"},
		"no message":                {streamMethod, ""},
	} {
		for _, protocol := range []string{"connect", "grpc-web", "grpc"} {
			for _, h2c := range []bool{false, true} {
				if protocol == "grpc" && !h2c {
					continue // needs HTTP/2
				}
				t.Run(fmt.Sprintf("%s, %s, h2c %t", name, protocol, h2c), func(t *testing.T) {
					engine, ann := contract.NewClock().Engine(t), contract.Caller(ratelimit.Caller{Subject: "ann", Plan: contract.Two})
					post := func(opts gatehouseconnect.Options) {
						opts.Name = "one" // of both limits, which share the engine
						r := must(http.NewRequest(http.MethodPost, start(t, same, limited(engine, ann, opts))+c.method, strings.NewReader(c.body)))
						r.Header.Set("Content-Type", "application/"+protocol+"+proto")
						transport := &http.Transport{Protocols: protocols(!h2c, h2c)}
						defer transport.CloseIdleConnections()
						resp := must(transport.RoundTrip(r))
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					}
					post(gatehouseconnect.Options{ChargeIf: gatehouseconnect.NotServerError})
					post(gatehouseconnect.Options{ChargeIf: func(*http.Request, error) bool { return false }})
					if n := contract.Used(t, engine, "one/ann", contract.Two); n != 2 {
						t.Errorf("%d units used by two calls, want 2", n)
					}
				})
			}
		}
	}
}

// A conn is a stream whose messages fare as the errors say.
type conn struct {
	connect.StreamingHandlerConn
	receive, send error
}

func (c conn) Spec() connect.Spec           { return connect.Spec{StreamType: connect.StreamTypeBidi} }
func (conn) Peer() (p connect.Peer)         { return p }
func (conn) RequestHeader() (h http.Header) { return h }
func (conn) ResponseHeader() http.Header    { return make(http.Header) }
func (c conn) Receive(any) error            { return c.receive }
func (c conn) Send(any) error               { return c.send }

// A stream stays charged whatever its handler makes of a message that could not be received
// or sent.
func TestRefundOfBrokenStreams(t *testing.T) {
	broken := connect.NewError(connect.CodeInvalidArgument, nil)
	for name, c := range map[string]struct {
		conn conn
		used int64
	}{
		"all well":       {conn{}, 0},
		"end":            {conn{receive: connect.NewError(connect.CodeUnknown, io.EOF)}, 0},
		"cannot receive": {conn{receive: broken}, 1},
		"cannot send":    {conn{send: broken}, 1},
	} {
		engine := contract.NewClock().Engine(t)
		i := limited(engine, contract.Caller(ratelimit.Caller{Subject: "ann", Plan: contract.Two}), gatehouseconnect.Options{ChargeIf: gatehouseconnect.NotServerError})[0]
		handler := i.WrapStreamingHandler(func(_ context.Context, s connect.StreamingHandlerConn) error {
			if s.Receive(nil) != c.conn.receive || s.Send(nil) != c.conn.send {
				t.Errorf("%s: the handler gets other errors", name)
			}
			return errors.New("disk full")
		})
		if err := handler(t.Context(), c.conn); err == nil {
			t.Errorf("%s: no error", name)
		}
		if n := contract.Used(t, engine, "ann", contract.Two); n != c.used {
			t.Errorf("%s: %d units used, want %d", name, n, c.used)
		}
	}
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
	} {
		t.Run(name, func(t *testing.T) {
			everyClient(t, func(t *testing.T, cl client) {
				engine, asked := contract.NewClock().Engine(t), 0
				opts := c.opts
				opts.ChargeIf = func(r *http.Request, err error) bool {
					asked++
					if r.URL.Path != cl.method || !c.panics && !errors.Is(err, c.err) || connect.CodeOf(err) != connect.CodeOf(c.err) {
						t.Errorf("ChargeIf gets %s, %v; want %v", r.URL.Path, err, c.err)
					}
					if opts.Context && limit.FromContext(r.Context()) == nil {
						t.Error("the context of ChargeIf has no reservation")
					}
					return connect.CodeOf(err) == connect.CodeUnauthenticated
				}
				handler := func(ctx context.Context, _ string) error {
					if n := contract.Used(t, engine, "ann", contract.Two); n != 1 || opts.Context != (limit.FromContext(ctx) != nil) {
						t.Errorf("%d units used while the call runs, want 1; a reservation: %t", n, limit.FromContext(ctx) != nil)
					}
					if c.panics {
						panic("bug")
					}
					return c.err
				}
				charged := ratelimit.Caller{Subject: "ann", Plan: contract.Two, Also: []ratelimit.Charge{{Subject: "all", Plan: contract.Two}}}
				a := cl.call(t.Context(), start(t, handler, limited(engine, contract.Caller(charged), opts)))
				if !c.panics && !opts.Shadow && a.field("X-RateLimit-Remaining") != "1" {
					t.Errorf("fields %v", a.fields)
				}
				if n, all := contract.Used(t, engine, "ann", contract.Two), contract.Used(t, engine, "all", contract.Two); n != c.used || all != c.used || asked != 1 {
					t.Errorf("%d and %d units used, want %d; asked %d times, want once", n, all, c.used, asked)
				}
			})
		})
	}
}
