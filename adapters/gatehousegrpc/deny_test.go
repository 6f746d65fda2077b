package gatehousegrpc_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/ratelimit"
)

// okError says that it is no error.
type okError struct{}

func (okError) Error() string              { return "secret-reason" }
func (okError) GRPCStatus() *status.Status { return status.New(codes.OK, "") }

// nilError has a status that a nil pointer does not have.
type nilError struct{ st *status.Status }

func (*nilError) Error() string                { return "secret-reason" }
func (e *nilError) GRPCStatus() *status.Status { return e.st }

const defaultText = "You have reached the limit of 2 requests per minute. Wait as long as Retry-After says."

// Deny replaces the answer to a limited call. No error of it admits the call, and the
// metadata is always that of the default.
func TestDeny(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		code    codes.Code
		message string
		reason  string
		details bool // RetryInfo and QuotaFailure
		logged  string
	}{
		"nil":              {nil, codes.ResourceExhausted, defaultText, "RATE_LIMIT_EXCEEDED", true, ""},
		"a status":         {status.Error(codes.Unavailable, "slow down"), codes.Unavailable, "slow down", "", false, ""},
		"a public error":   {apierror.New(http.StatusTooManyRequests, "slow_down", "Bitte langsamer."), codes.ResourceExhausted, "Bitte langsamer.", "SLOW_DOWN", true, ""},
		"not UTF-8":        {apierror.New(http.StatusTooManyRequests, "slow_down\xff", "Bitte \xfflangsamer."), codes.ResourceExhausted, "Bitte \uFFFDlangsamer.", "SLOW_DOWN\uFFFD", true, ""},
		"a private error":  {errors.New("secret-reason"), codes.Internal, "The service failed to answer this request.", "INTERNAL", true, "gatehousegrpc: Options.Deny: secret-reason"},
		"a status of OK":   {okError{}, codes.Internal, "The service failed to answer this request.", "INTERNAL", true, "gatehousegrpc: Options.Deny: secret-reason"},
		"a nil status":     {(*nilError)(nil), codes.Internal, "The service failed to answer this request.", "INTERNAL", true, "gatehousegrpc: Options.Deny: secret-reason"},
		"a nil Error":      {(*apierror.Error)(nil), codes.ResourceExhausted, defaultText, "RATE_LIMIT_EXCEEDED", true, ""},
		"a wrapped status": {errors.Join(status.Error(codes.Aborted, "no")), codes.Aborted, "", "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
				errs, logs := logged()
				served, denied := 0, 0
				handler := func(context.Context, string) (string, error) { served++; return "", nil }
				opts := gatehousegrpc.Options{Errors: errs, Deny: func(ctx context.Context, method string, c2 ratelimit.Caller, d ratelimit.Decision) error {
					denied++
					if lang := metadata.ValueFromIncomingContext(ctx, "accept-language"); len(lang) != 1 || lang[0] != "de" {
						t.Errorf("Deny finds the language %v", lang)
					}
					if method != unaryMethod && method != streamMethod || c2.Subject != "all" || d.Outcome != ratelimit.Limited || d.RetryAfter != 17*time.Second {
						t.Errorf("Deny gets %s, %+v, %+v", method, c2, d)
					}
					return c.err
				}}
				charged := ratelimit.Caller{Subject: "ann", Plan: ratelimit.UnlimitedPlan("staff"), Also: []ratelimit.Charge{{Subject: "all", Plan: two}}}
				conn := start(t, handler, limited(t, newClock().engine(t), caller(charged), opts)...)
				ctx := metadata.AppendToOutgoingContext(t.Context(), "accept-language", "de")
				for range 2 {
					expect(t, call(ctx, conn), codes.OK, "")
				}
				a := call(ctx, conn)
				expect(t, a, c.code, c.message)
				if served != 2 || denied != 1 {
					t.Errorf("served %d calls, want 2; Deny called %d times, want once", served, denied)
				}
				if a.trailer.Get("x-ratelimit-remaining")[0] != "0" || a.field("retry-after") != "17" || a.field("grpc-retry-pushback-ms") != "17000" {
					t.Errorf("trailer %v, want that of the default", a.trailer)
				}
				quota := detail[*errdetails.QuotaFailure](a.status)
				if a.reason() != c.reason || (a.retryDelay() == 17*time.Second) != c.details || (len(quota.GetViolations()) == 1) != c.details {
					t.Errorf("details %v, want the reason %q, and the others: %t", a.status.Details(), c.reason, c.details)
				}
				if c.logged == "" && logs() != "" || !strings.Contains(logs(), c.logged) {
					t.Errorf("the log has %q, want %q", logs(), c.logged)
				}
			})
		})
	}
}

// Deny is called for the three outcomes that refuse a call, and for nothing else.
func TestDenyIsCalledForDenials(t *testing.T) {
	ban := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 2, Max: 2 * time.Hour, Forgive: time.Hour}
	banned := ratelimit.MustPlan("banned", ban, ratelimit.PerMinute(1))
	two := caller(ratelimit.Caller{Subject: "a", Plan: two})
	for name, c := range map[string]struct {
		limiter  ratelimit.Limiter
		identify gatehousegrpc.Identify
		opts     gatehousegrpc.Options
		calls    int
		outcome  ratelimit.Outcome
		code     codes.Code
	}{
		"limited":        {nil, two, gatehousegrpc.Options{}, 3, ratelimit.Limited, codes.OutOfRange},
		"banned":         {nil, caller(ratelimit.Caller{Subject: "a", Plan: banned}), gatehousegrpc.Options{}, 3, ratelimit.Banned, codes.OutOfRange},
		"suspended":      {nil, caller(ratelimit.Caller{Subject: "a", Plan: ratelimit.SuspendedPlan("debtor")}), gatehousegrpc.Options{}, 1, ratelimit.Suspended, codes.OutOfRange},
		"shadow":         {nil, two, gatehousegrpc.Options{Shadow: true}, 3, 0, codes.OK},
		"engine is down": {down{}, two, gatehousegrpc.Options{}, 1, 0, codes.Unavailable},
		"too expensive":  {nil, two, gatehousegrpc.Options{Cost: func(context.Context, string) int64 { return 3 }}, 1, 0, codes.InvalidArgument},
		"no plan":        {nil, caller(ratelimit.Caller{Subject: "a"}), gatehousegrpc.Options{}, 1, 0, codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
				var outcome ratelimit.Outcome
				c.opts.Errors, _ = logged()
				c.opts.Deny = func(_ context.Context, _ string, _ ratelimit.Caller, d ratelimit.Decision) error {
					outcome = d.Outcome
					return status.Error(codes.OutOfRange, "")
				}
				l := c.limiter
				if l == nil {
					l = newClock().engine(t)
				}
				conn := start(t, same, limited(t, l, c.identify, c.opts)...)
				for range c.calls - 1 {
					call(t.Context(), conn)
				}
				expect(t, call(t.Context(), conn), c.code, "")
				if outcome != c.outcome {
					t.Errorf("Deny gets %v, want %v", outcome, c.outcome)
				}
			})
		})
	}
}

// An error of identify whose status is OK refuses the call as any other error.
func TestIdentifyFailsWithOK(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		errs, logs := logged()
		identify := func(context.Context, string) (ratelimit.Caller, error) { return ratelimit.Caller{}, okError{} }
		expect(t, call(t.Context(), start(t, same, limited(t, newClock().engine(t), identify, gatehousegrpc.Options{Errors: errs})...)), codes.Internal, "")
		if !strings.Contains(logs(), "secret-reason") {
			t.Errorf("the log has %q", logs())
		}
	})
}
