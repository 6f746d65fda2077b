package gatehouseconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/animalstore/gatehouse/adapters/gatehouseconnect"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
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
				errs, logs := logged()
				identify := func(r *http.Request) (ratelimit.Caller, error) {
					if r.URL.Path != cl.method || clientip.FromRemoteAddr().Addr(r).String() != "127.0.0.1" || r.Header.Get("X-Tenant") != "acme" {
						t.Errorf("identify gets %+v", r)
					}
					return ratelimit.Caller{}, c.err
				}
				cl.header = http.Header{"X-Tenant": {"acme"}}
				a := cl.call(t.Context(), start(t, same, limited(t, newClock().engine(t), identify, gatehouseconnect.Options{Errors: errs})))
				expect(t, a, c.code, c.message)
				if c.code == connect.CodeInternal && !strings.Contains(logs(), "secret-host") {
					t.Errorf("the log has %q", logs())
				}
			})
		})
	}
}

// Faults of the server are given back, and nothing else.
func TestRefund(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		panics   bool
		refunded bool
	}{
		"success":               {nil, false, false},
		"not found":             {connect.NewError(connect.CodeNotFound, nil), false, false},
		"not modified":          {connect.NewNotModifiedError(http.Header{"Etag": {`"1"`}}), false, false},
		"an inner limit":        {connect.NewError(connect.CodeResourceExhausted, nil), false, false},
		"internal":              {connect.NewError(connect.CodeInternal, nil), false, true},
		"unavailable":           {connect.NewError(connect.CodeUnavailable, nil), false, true},
		"an error of its own":   {errors.New("disk full"), false, true},
		"context.Canceled":      {fmt.Errorf("query: %w", context.Canceled), false, false},        // the client gets canceled
		"a deadline of its own": {fmt.Errorf("query: %w", context.DeadlineExceeded), false, true}, // and deadline_exceeded
		"a backend's timeout":   {connect.NewError(connect.CodeDeadlineExceeded, nil), false, true},
		"panic":                 {nil, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			everyClient(t, func(t *testing.T, cl client) {
				engine := newClock().engine(t)
				charged := ratelimit.Caller{Subject: "ann", Plan: two, Also: []ratelimit.Charge{{Subject: "all", Plan: two}}}
				handler := func(context.Context, string) error {
					if c.panics {
						panic("bug")
					}
					return c.err
				}
				a := cl.call(t.Context(), start(t, handler, limited(t, engine, caller(charged), gatehouseconnect.Options{Refund: true})))
				if !c.panics && a.field("X-RateLimit-Remaining") != "1" {
					t.Errorf("fields %v", a.fields)
				}
				want := int64(1)
				if c.refunded {
					want = 0
				}
				if n, all := used(t, engine, "ann", two), used(t, engine, "all", two); n != want || all != want {
					t.Errorf("%d and %d units used, want %d", n, all, want)
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
			everyClient(t, func(t *testing.T, c client) {
				var engine *memory.Limiter
				whenReached(t, func(deadline time.Duration) <-chan struct{} {
					engine = newClock().engine(t)
					ctx, cancel := context.WithCancel(t.Context())
					if name == "deadline" {
						ctx, cancel = context.WithTimeout(t.Context(), deadline)
					}
					defer cancel()
					ended, reached := make(chan struct{}), false
					handler := func(ctx context.Context, _ string) error {
						if reached = true; name == "cancelled" {
							cancel()
						}
						<-ctx.Done()
						return errors.New("because of the context")
					}
					after := func(next http.Handler) http.Handler {
						return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							if next.ServeHTTP(w, r); reached {
								close(ended)
							}
						})
					}
					url := start(t, handler, limited(t, engine, caller(ratelimit.Caller{Subject: "ann", Plan: two}), gatehouseconnect.Options{Refund: true}), after)
					if a := c.call(ctx, url); a.err == nil {
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
					engine, ann := newClock().engine(t), caller(ratelimit.Caller{Subject: "ann", Plan: two})
					post := func(opts gatehouseconnect.Options) {
						r, err := http.NewRequest(http.MethodPost, start(t, same, limited(t, engine, ann, opts))+c.method, strings.NewReader(c.body))
						if err != nil {
							t.Fatal(err)
						}
						r.Header.Set("Content-Type", "application/"+protocol+"+proto")
						transport := &http.Transport{Protocols: protocols(!h2c, h2c)}
						defer transport.CloseIdleConnections()
						resp, err := transport.RoundTrip(r)
						if err != nil {
							t.Fatal(err)
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					}
					post(gatehouseconnect.Options{Refund: true})
					post(gatehouseconnect.Options{ChargeIf: func(*http.Request, error) bool { return false }})
					if n := used(t, engine, "ann", two); n != 2 {
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
		engine := newClock().engine(t)
		i := limited(t, engine, caller(ratelimit.Caller{Subject: "ann", Plan: two}), gatehouseconnect.Options{Refund: true})[0]
		handler := i.WrapStreamingHandler(func(_ context.Context, s connect.StreamingHandlerConn) error {
			if s.Receive(nil) != c.conn.receive || s.Send(nil) != c.conn.send {
				t.Errorf("%s: the handler gets other errors", name)
			}
			return errors.New("disk full")
		})
		if err := handler(t.Context(), c.conn); err == nil {
			t.Errorf("%s: no error", name)
		}
		if n := used(t, engine, "ann", two); n != c.used {
			t.Errorf("%s: %d units used, want %d", name, n, c.used)
		}
	}
}
