package gatehousegrpc_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/ratelimit"
)

var two = ratelimit.MustPlan("two", ratelimit.Penalty{}, ratelimit.PerMinute(2), ratelimit.PerDay(100))

// A client that waits as long as RetryInfo says is admitted, and one that waits a
// millisecond less is not.
func TestLimited(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		at := newClock()
		conn := start(t, same, limited(t, at.engine(t), caller(ratelimit.Caller{Subject: "ann", Plan: two}), gatehousegrpc.Options{})...)
		for _, left := range []string{"1", "0"} {
			a := call(t.Context(), conn)
			expect(t, a, codes.OK, "")
			if a.header.Get("x-ratelimit-remaining")[0] != left || a.header.Get("x-ratelimit-limit")[0] != "2" ||
				a.header.Get("x-ratelimit-reset")[0] != "1795348860" || a.field("retry-after") != "" {
				t.Errorf("header %v, want 2, %s left until 12:01", a.header, left)
			}
		}
		at.advance(time.Second / 2)
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
		at.advance(a.retryDelay() - time.Millisecond)
		again := call(t.Context(), conn)
		expect(t, again, codes.ResourceExhausted, "")
		at.advance(again.retryDelay())
		expect(t, call(t.Context(), conn), codes.OK, "")
	})
}

// A stream costs one unit, however many messages it carries.
func TestStreamIsChargedOnce(t *testing.T) {
	at := newClock()
	engine := at.engine(t)
	conn := start(t, same, limited(t, engine, caller(ratelimit.Caller{Subject: "ann", Plan: two}), gatehousegrpc.Options{})...)
	if a, received := stream(t.Context(), conn, 50); received != 50 || a.header.Get("x-ratelimit-remaining")[0] != "1" {
		t.Errorf("%d messages came back, %v, header %v", received, a.status, a.header)
	}
	if n := used(t, engine, "ann", two); n != 1 {
		t.Errorf("a stream of 50 messages has used %d units, want 1", n)
	}
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
		"limited, with strikes": {
			ratelimit.Caller{Subject: "a", Plan: banned}, 1, codes.ResourceExhausted, "RATE_LIMIT_EXCEEDED",
			"You have reached the limit of 1 request per minute. Wait as long as Retry-After says. Any further request before then may get you banned.",
			17 * time.Second, "0/1",
		},
		"banned": {
			ratelimit.Caller{Subject: "a", Plan: banned, Kind: ratelimit.KindAPIKey}, 2, codes.ResourceExhausted, "API_KEY_BANNED",
			"This API key is temporarily banned because it kept sending requests after reaching its limit. Wait as long as Retry-After says.",
			time.Hour, "0/1",
		},
		"suspended": {
			ratelimit.Caller{Subject: "a", Plan: ratelimit.SuspendedPlan("debtor")}, 0, codes.PermissionDenied, "PLAN_SUSPENDED",
			"Your plan is suspended and allows no requests. Contact the operator of this service.", 0, "0/0",
		},
		"unlimited":  {ratelimit.Caller{Subject: "a", Plan: ratelimit.UnlimitedPlan("staff")}, 9, codes.OK, "", "", 0, "/"},
		"no plan":    {ratelimit.Caller{Subject: "a"}, 0, codes.Internal, "INTERNAL", "The service failed to answer this request.", 0, "/"},
		"no subject": {ratelimit.Caller{Plan: two}, 0, codes.Internal, "INTERNAL", "The service failed to answer this request.", 0, "/"},
		"one of several": {
			ratelimit.Caller{Subject: "a", Plan: two, Kind: ratelimit.KindAPIKey, Also: []ratelimit.Charge{{Subject: "all", Plan: banned}}},
			2, codes.ResourceExhausted, "CLIENT_BANNED",
			"You are temporarily banned because you kept sending requests after reaching your limit. Wait as long as Retry-After says.",
			time.Hour, "0/1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
				errs, logs := logged()
				conn := start(t, same, limited(t, newClock().engine(t), caller(c.caller), gatehousegrpc.Options{Errors: errs})...)
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
				if want := c.code == codes.Internal; want != (logs() != "") || want != strings.Contains(logs(), "gatehousegrpc: identify or Options.Cost returned") {
					t.Errorf("the log has %q", logs())
				}
			})
		})
	}
}

// A call that costs more than a quota can never be admitted.
func TestCostExceedsLimit(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		errs, _ := logged()
		opts := gatehousegrpc.Options{Errors: errs, Cost: func(_ context.Context, method string) int64 {
			if method != unaryMethod && method != streamMethod {
				t.Errorf("Cost gets the method %q", method)
			}
			return 3
		}}
		a := call(t.Context(), start(t, same, limited(t, newClock().engine(t), caller(ratelimit.Caller{Subject: "ann", Plan: two}), opts)...))
		expect(t, a, codes.InvalidArgument, "This call costs 3 units, but your plan allows at most 2/minute.")
		if a.reason() != "COST_EXCEEDS_LIMIT" {
			t.Errorf("reason %s", a.reason())
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	engine, identify := newClock().engine(t), caller(ratelimit.Caller{})
	for want, test := range map[string]func() error{
		"gatehousegrpc: the limiter must not be nil": func() error {
			_, err := gatehousegrpc.Unary(nil, identify, gatehousegrpc.Options{})
			return err
		},
		"gatehousegrpc: identify must not be nil": func() error {
			_, err := gatehousegrpc.Stream(engine, nil, gatehousegrpc.Options{})
			return err
		},
		"gatehousegrpc: limit: Options.ChargeIf needs a limiter that is an Adjuster, got struct { ratelimit.Limiter }": func() error {
			_, err := gatehousegrpc.Stream(struct{ ratelimit.Limiter }{engine}, identify, gatehousegrpc.Options{ChargeIf: failedSignIns})
			return err
		},
	} {
		if err := test(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
