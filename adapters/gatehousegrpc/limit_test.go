package gatehousegrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// ann is the caller of most tests.
var ann = contract.Caller(ratelimit.Caller{Subject: "ann", Plan: contract.Two})

// A refusal has the fields in its trailer, and details with the exact time to wait.
func TestDetails(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn, string) answer) {
		at := contract.NewClock()
		conn := start(t, same, limited(t, at.Engine(t), ann, gatehousegrpc.Options{})...)
		for range 2 {
			if a := call(t.Context(), conn, "hello"); len(a.header.Get("x-ratelimit-remaining")) != 1 {
				t.Errorf("header %v, trailer %v, want the fields in the header", a.header, a.trailer)
			}
		}
		at.Advance(time.Second / 2)
		a := call(t.Context(), conn, "hello")
		expect(t, a, codes.ResourceExhausted, "")
		if a.retryDelay() != 16500*time.Millisecond || len(a.trailer.Get("x-ratelimit-remaining")) != 1 {
			t.Errorf("RetryInfo %v, header %v, trailer %v; want 16.5s, and the fields in the trailer", a.retryDelay(), a.header, a.trailer)
		}
		want := &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{
			{QuotaId: "minute", QuotaValue: 2, Description: "2/minute"},
		}}
		if diff := cmp.Diff(want, detail[*errdetails.QuotaFailure](a.status), protocmp.Transform()); diff != "" {
			t.Errorf("QuotaFailure (-want +got):\n%s", diff)
		}
		info := &errdetails.ErrorInfo{Reason: "RATE_LIMIT_EXCEEDED", Domain: "github.com/animalstore/gatehouse"}
		if diff := cmp.Diff(info, detail[*errdetails.ErrorInfo](a.status), protocmp.Transform()); diff != "" {
			t.Errorf("ErrorInfo (-want +got):\n%s", diff)
		}
	})
}

// Clients with a retry policy wait to the millisecond, up to a minute. Without a wait a call
// has neither RetryInfo nor a pushback, which a client would take for an invitation.
func TestPushback(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		0: "", 1: "1", 1500 * time.Millisecond: "1500", 1500*time.Millisecond + 1: "1501",
		time.Minute: "60000", time.Minute + time.Millisecond: "-1", 24 * time.Hour: "-1",
	} {
		both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn, string) answer) {
			later := apierror.New(http.StatusServiceUnavailable, "later", "Later.")
			later.RetryAfter = wait
			identify := func(*http.Request) (ratelimit.Caller, error) { return ratelimit.Caller{}, later }
			a := call(t.Context(), start(t, same, limited(t, contract.NewClock().Engine(t), identify, gatehousegrpc.Options{})...), "hello")
			if got := a.field("grpc-retry-pushback-ms"); got != want || (detail[*errdetails.RetryInfo](a.status) != nil) != (wait > 0) {
				t.Errorf("a wait of %v has the pushback %q and RetryInfo %v, want %q", wait, got, a.retryDelay(), want)
			}
		})
	}
}

// A handler that sends its header early sends the fields with it, or else in the trailer.
func TestHeaderIsSentEarly(t *testing.T) {
	own := metadata.Pairs("own", "1")
	limits := limited(t, contract.NewClock().Engine(t), ann, gatehousegrpc.Options{})
	early := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
		return errors.Join(ss.SendHeader(own), h(srv, ss))
	}
	past := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
		return errors.Join(grpc.SendHeader(ss.Context(), own), h(srv, ss))
	}
	earlyUnary := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		if err := grpc.SendHeader(ctx, own); err != nil {
			return nil, err
		}
		return h(ctx, req)
	}
	conn := start(t, same, append(limits, interceptors(earlyUnary, early)...)...)
	if a := call(t.Context(), conn, "hello"); a.field("x-ratelimit-remaining") != "1" || len(a.header.Get("own")) != 1 {
		t.Errorf("header %v, trailer %v, want x-ratelimit-remaining and own", a.header, a.trailer)
	}
	if a := stream(t.Context(), conn, "hello"); len(a.header.Get("x-ratelimit-remaining")) != 1 || len(a.header.Get("own")) != 1 {
		t.Errorf("header %v, trailer %v, want x-ratelimit-remaining and own in the header", a.header, a.trailer)
	}
	conn = start(t, same, append(limited(t, contract.NewClock().Engine(t), ann, gatehousegrpc.Options{}), interceptors(earlyUnary, past)...)...)
	if a := stream(t.Context(), conn, "hello"); a.field("x-ratelimit-remaining") != "1" || len(a.header.Get("own")) != 1 {
		t.Errorf("header %v, trailer %v, want x-ratelimit-remaining and own", a.header, a.trailer)
	}
}

// text is the address of a server that is an http.Handler.
type text string

func (text) Network() string  { return "tcp" }
func (a text) String() string { return string(a) }

// A call is a request to identify. The address in the metadata counts if a trusted proxy
// has put it there.
func TestCallsAsRequests(t *testing.T) {
	source := testcheck.Must(clientip.FromXForwardedFor([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}))
	for _, c := range []struct {
		from         net.Addr
		peer, client string
	}{
		{&net.TCPAddr{IP: net.ParseIP("10.0.0.1"), Port: 4711}, "10.0.0.1", "203.0.113.9"},
		{&net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: 4711}, "192.0.2.1", "192.0.2.1"},
		{text("[::ffff:192.0.2.1]:9"), "192.0.2.1", "192.0.2.1"},
		{text("[2001:db8::1]:9"), "2001:db8::1", "2001:db8::1"},
		{&net.UnixAddr{Name: "/run/pets", Net: "unix"}, "invalid IP", "invalid IP"},
		{nil, "invalid IP", "invalid IP"},
	} {
		unary, _, err := gatehousegrpc.New(contract.NewClock().Engine(t), func(r *http.Request) (ratelimit.Caller, error) {
			if peer, client := clientip.FromRemoteAddr().Addr(r).String(), source.Addr(r).String(); peer != c.peer || client != c.client {
				t.Errorf("a call from %v is one of %s, and behind proxies of %s; want %s and %s", c.from, peer, client, c.peer, c.client)
			}
			if r.URL.Path != contract.Unary || r.Method != http.MethodPost || r.Header.Get("Own") != "1" {
				t.Errorf("identify gets %+v", r)
			}
			return ratelimit.Caller{Subject: "ann", Plan: contract.Two}, nil
		}, gatehousegrpc.Options{})
		testcheck.NoError(t, err)
		ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: c.from})
		ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("x-forwarded-for", "6.6.6.6", "x-forwarded-for", "203.0.113.9, 10.0.0.2", "own", "1"))
		handler := func(context.Context, any) (any, error) { return nil, nil }
		testcheck.Must(unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: contract.Unary}, handler))
	}
}

// A status of OK is no answer, nor is that of a nil pointer.
func TestStatusesThatAreNone(t *testing.T) {
	for _, err := range []error{okError{}, (*nilError)(nil), fmt.Errorf("wrapped: %w", (*nilError)(nil))} {
		both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn, string) answer) {
			errs, _ := contract.Logged()
			identify := func(*http.Request) (ratelimit.Caller, error) { return ratelimit.Caller{}, err }
			a := call(t.Context(), start(t, same, limited(t, contract.NewClock().Engine(t), identify, gatehousegrpc.Options{Options: limit.Options{Errors: errs}})...), "hello")
			expect(t, a, codes.Internal, "The service failed to answer this request.")
		})
	}
}

type okError struct{}

func (okError) Error() string              { return "secret-host" }
func (okError) GRPCStatus() *status.Status { return status.New(codes.OK, "") }

type nilError struct{ status *status.Status }

func (*nilError) Error() string                { return "secret-host" }
func (e *nilError) GRPCStatus() *status.Status { return e.status }
