package gatehousegrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
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
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A client that waits as long as RetryInfo says is admitted, and one that waits a
// millisecond less is not.
func TestLimited(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		at := contract.NewClock()
		conn := start(t, same, limited(t, at.Engine(t), contract.Caller(ratelimit.Caller{Subject: "ann", Plan: contract.Two}), gatehousegrpc.Options{})...)
		for _, left := range []string{"1", "0"} {
			a := call(t.Context(), conn)
			expect(t, a, codes.OK, "")
			if a.header.Get("x-ratelimit-remaining")[0] != left || a.header.Get("x-ratelimit-limit")[0] != "2" ||
				a.header.Get("x-ratelimit-reset")[0] != "1795348860" || a.field("retry-after") != "" {
				t.Errorf("header %v, want 2, %s left until 12:01", a.header, left)
			}
		}
		at.Advance(time.Second / 2)
		a := call(t.Context(), conn)
		expect(t, a, codes.ResourceExhausted, "You have reached the limit of 2 requests per minute. Wait as long as Retry-After says.")
		if a.field("x-ratelimit-remaining") != "0" || a.field("retry-after") != "17" || a.retryDelay() != 16500*time.Millisecond {
			t.Errorf("refused with %v left, retry-after %v, RetryInfo %v; want 0, 17, 16.5s",
				a.field("x-ratelimit-remaining"), a.field("retry-after"), a.retryDelay())
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
		at.Advance(a.retryDelay() - time.Millisecond)
		again := call(t.Context(), conn)
		expect(t, again, codes.ResourceExhausted, "")
		at.Advance(again.retryDelay())
		expect(t, call(t.Context(), conn), codes.OK, "")
	})
}

// Of limits inside of each other the innermost one replaces the fields that it has itself.
func TestLimitsInside(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		engine := contract.NewClock().Engine(t)
		wide := ratelimit.MustPlan("wide", ratelimit.Penalty{}, ratelimit.PerMinute(50))
		conn := start(t, same, slices.Concat(
			limited(t, engine, contract.Caller(ratelimit.Caller{Subject: "ann", Plan: wide}), gatehousegrpc.Options{Headers: limit.XRateLimit | limit.DraftRateLimit}),
			limited(t, engine, contract.Caller(ratelimit.Caller{Subject: "ann", Plan: wide}), gatehousegrpc.Options{Name: "search"}),
			limited(t, engine, contract.Caller(ratelimit.Caller{Subject: "ann", Plan: contract.Two}), gatehousegrpc.Options{Name: "export"}))...)
		for _, want := range []struct {
			code                  codes.Code
			remaining, retryAfter string
		}{{codes.OK, "1", ""}, {codes.OK, "0", ""}, {codes.ResourceExhausted, "0", "17"}} {
			a := call(t.Context(), conn)
			expect(t, a, want.code, "")
			if a.field("x-ratelimit-limit") != "2" || a.field("x-ratelimit-remaining") != want.remaining || a.field("retry-after") != want.retryAfter {
				t.Errorf("header %v and trailer %v, want those of the innermost limit", a.header, a.trailer)
			}
			if !strings.HasPrefix(a.field("ratelimit"), `"minute";r=4`) {
				t.Errorf("ratelimit %q, want the field that the outermost limit alone has", a.field("ratelimit"))
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	ban := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 2, Max: 2 * time.Hour, Forgive: time.Hour}
	banned := ratelimit.MustPlan("banned", ban, ratelimit.PerMinute(1))
	for name, c := range map[string]struct {
		caller  ratelimit.Caller
		before  int
		code    codes.Code
		reason  string
		message string
		retry   time.Duration
		fields  string
	}{
		"banned": {
			ratelimit.Caller{Subject: "a", Plan: banned, Kind: ratelimit.KindAPIKey}, 2, codes.ResourceExhausted, "API_KEY_BANNED",
			"This API key is temporarily banned because it kept sending requests after reaching its limit. Wait as long as Retry-After says.",
			time.Hour, "0/1",
		},
		"suspended": {
			ratelimit.Caller{Subject: "a", Plan: ratelimit.SuspendedPlan("debtor")}, 0, codes.PermissionDenied, "PLAN_SUSPENDED",
			"Your plan is suspended and allows no requests. Contact the operator of this service.", 0, "0/0",
		},
		"unlimited": {ratelimit.Caller{Subject: "a", Plan: ratelimit.UnlimitedPlan("staff")}, 9, codes.OK, "", "", 0, "/"},
		"no plan":   {ratelimit.Caller{Subject: "a"}, 0, codes.Internal, "INTERNAL", "The service failed to answer this request.", 0, "/"},
		"the engine is down": {
			ratelimit.Caller{Subject: "a", Plan: contract.Two}, 0, codes.Unavailable, "UNAVAILABLE",
			"The service cannot check your rate limit at the moment. Wait as long as Retry-After says.", time.Second, "0/2",
		},
		"one of several": {
			ratelimit.Caller{Subject: "a", Plan: contract.Two, Kind: ratelimit.KindAPIKey, Also: []ratelimit.Charge{{Subject: "all", Plan: banned}}},
			2, codes.ResourceExhausted, "CLIENT_BANNED",
			"You are temporarily banned because you kept sending requests after reaching your limit. Wait as long as Retry-After says.",
			time.Hour, "0/1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
				errs, logs := contract.Logged()
				var l ratelimit.Limiter = contract.NewClock().Engine(t)
				if name == "the engine is down" {
					l = down{}
				}
				conn := start(t, same, limited(t, l, contract.Caller(c.caller), gatehousegrpc.Options{Errors: errs})...)
				for range c.before {
					call(t.Context(), conn)
				}
				a := call(t.Context(), conn)
				expect(t, a, c.code, c.message)
				if a.reason() != c.reason || a.retryDelay() != c.retry {
					t.Errorf("reason %s, retry after %v, want %s, %v", a.reason(), a.retryDelay(), c.reason, c.retry)
				}
				// A client would take a RetryInfo or a pushback of nothing for an invitation.
				if info := detail[*errdetails.RetryInfo](a.status); (info != nil) != (c.retry > 0) || (a.field("grpc-retry-pushback-ms") != "") != (c.retry > 0) {
					t.Errorf("RetryInfo %v, trailer %v, want both only for a wait of %v", info, a.trailer, c.retry)
				}
				if failure := detail[*errdetails.QuotaFailure](a.status); (failure != nil) != (c.reason == "RATE_LIMIT_EXCEEDED") {
					t.Errorf("QuotaFailure %v for %s", failure, c.reason)
				}
				if fields := a.field("x-ratelimit-remaining") + "/" + a.field("x-ratelimit-limit"); fields != c.fields {
					t.Errorf("x-ratelimit %s, want %s", fields, c.fields)
				}
				want := map[codes.Code]string{codes.Internal: "limit: identify or Options.Cost returned", codes.Unavailable: "10.0.0.7"}[c.code]
				if (want != "") != (logs.Text() != "") || !strings.Contains(logs.Text(), want) {
					t.Errorf("the log has %q", logs.Text())
				}
			})
		})
	}
}

// A handler that sends its header early sends the fields with it.
func TestHeaderIsSentEarly(t *testing.T) {
	limits := limited(t, contract.NewClock().Engine(t), contract.Caller(ratelimit.Caller{Subject: "ann", Plan: contract.Two}), gatehousegrpc.Options{})
	early := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
		if err := ss.SendHeader(metadata.Pairs("own", "1")); err != nil {
			t.Error(err)
		}
		return h(srv, ss)
	}
	conn := start(t, same, append(limits, grpc.ChainStreamInterceptor(early))...)
	a := stream(t.Context(), conn)
	if got := a.header.Get("x-ratelimit-remaining"); len(got) != 1 || got[0] != "1" || len(a.header.Get("own")) != 1 {
		t.Errorf("header %v, trailer %v, want x-ratelimit-remaining and own in the header", a.header, a.trailer)
	}
}

// text is the address of a server that is an http.Handler.
type text string

func (text) Network() string  { return "tcp" }
func (a text) String() string { return string(a) }

// A call is a request to identify. The address in the metadata counts if a trusted proxy
// has put it there.
func TestCallsAsRequests(t *testing.T) {
	source := must(clientip.FromXForwardedFor([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}))
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
			if r.URL.Path != unaryMethod || r.Method != http.MethodPost || r.Header.Get("Own") != "1" {
				t.Errorf("identify gets %+v", r)
			}
			return ratelimit.Caller{Subject: "ann", Plan: contract.Two}, nil
		}, gatehousegrpc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: c.from})
		ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("x-forwarded-for", "6.6.6.6", "x-forwarded-for", "203.0.113.9, 10.0.0.2", "own", "1"))
		handler := func(context.Context, any) (any, error) { return nil, nil }
		must(unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: unaryMethod}, handler))
	}
}

// okError says that it is no error.
type okError struct{}

func (okError) Error() string              { return "secret-host" }
func (okError) GRPCStatus() *status.Status { return status.New(codes.OK, "") }

// A translation sees the metadata of a call that is not authenticated.
func TestTranslate(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		errs, _ := contract.Logged()
		errs.Translate = func(r *http.Request, e *apierror.Error) string {
			return fmt.Sprint(r.Header.Get("Accept-Language"), " ", e.Code)
		}
		ctx := metadata.AppendToOutgoingContext(t.Context(), "accept-language", "de")
		auth := must(bearer.New("test", func(context.Context, string) (string, error) { return "", bearer.ErrInvalid }, bearer.Options{Errors: errs}))
		conn := start(t, same, append(interceptors(gatehousegrpc.Identify(auth)), interceptors(gatehousegrpc.Require(auth))...)...)
		expect(t, call(ctx, conn), codes.Unauthenticated, "de missing_api_key")
	})
}

// down is an engine that does not answer.
type down struct{}

func (down) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, fmt.Errorf("%w: 10.0.0.7 does not answer", ratelimit.ErrUnavailable)
}

func TestIdentifyFails(t *testing.T) {
	missing := apierror.New(http.StatusNotFound, "tenant_not_found", "There is no tenant with this name.")
	for name, c := range map[string]struct {
		err     error
		code    codes.Code
		message string
	}{
		"a public error":  {fmt.Errorf("lookup: %w", missing), codes.NotFound, "There is no tenant with this name."},
		"a status":        {status.Error(codes.FailedPrecondition, "sign up first"), codes.FailedPrecondition, "sign up first"},
		"a private error": {errors.New("secret-host does not answer"), codes.Internal, "The service failed to answer this request."},
		"a status of OK":  {okError{}, codes.Internal, "The service failed to answer this request."},
		"no answer":       {fmt.Errorf("%w: secret-host", ratelimit.ErrUnavailable), codes.Unavailable, "The service cannot check your rate limit at the moment. Wait as long as Retry-After says."},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
				errs, logs := contract.Logged()
				identify := func(*http.Request) (ratelimit.Caller, error) { return ratelimit.Caller{}, c.err }
				a := call(t.Context(), start(t, same, limited(t, contract.NewClock().Engine(t), identify, gatehousegrpc.Options{Errors: errs})...))
				expect(t, a, c.code, c.message)
				if (a.retryDelay() == time.Second) != (c.code == codes.Unavailable) {
					t.Errorf("RetryInfo has %v", a.retryDelay())
				}
				var observed error
				open := gatehousegrpc.Options{FailOpen: true, Errors: errs, Observe: func(_ *http.Request, _ ratelimit.Caller, _ ratelimit.Decision, err error) { observed = err }}
				a = call(t.Context(), start(t, same, limited(t, contract.NewClock().Engine(t), identify, open)...))
				if unavailable := c.code == codes.Unavailable; (a.status.Code() == codes.OK) != unavailable || errors.Is(observed, ratelimit.ErrUnavailable) != unavailable {
					t.Errorf("FailOpen: %v, observed %v", a.status, observed)
				}
				if c.code == codes.Internal && !strings.Contains(logs.Text(), "secret-host") {
					t.Errorf("the log has %q", logs.Text())
				}
				a = call(t.Context(), start(t, same, limited(t, contract.NewClock().Engine(t), identify, gatehousegrpc.Options{Shadow: true})...))
				expect(t, a, codes.OK, "")
			})
		})
	}
}
