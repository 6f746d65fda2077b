package gatehousegrpc_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/animalstore/gatehouse/adapters/internal/contract"
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
		"a nil status":     {(*nilError)(nil), codes.ResourceExhausted, defaultText, "RATE_LIMIT_EXCEEDED", true, ""},
		"a nil Error":      {(*apierror.Error)(nil), codes.ResourceExhausted, defaultText, "RATE_LIMIT_EXCEEDED", true, ""},
		"a wrapped status": {errors.Join(status.Error(codes.Aborted, "no")), codes.Aborted, "", "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
				errs, logs := contract.Logged()
				served, denied := 0, 0
				handler := func(context.Context, string) (string, error) { served++; return "", nil }
				opts := gatehousegrpc.Options{Errors: errs, Deny: func(r *http.Request, c2 ratelimit.Caller, d ratelimit.Decision) error {
					denied++
					if lang := r.Header.Get("Accept-Language"); lang != "de" {
						t.Errorf("Deny finds the language %v", lang)
					}
					if r.URL.Path != unaryMethod && r.URL.Path != streamMethod || c2.Subject != "all" || d.Outcome != ratelimit.Limited || d.RetryAfter != 17*time.Second {
						t.Errorf("Deny gets %s, %+v, %+v", r.URL.Path, c2, d)
					}
					return c.err
				}}
				charged := ratelimit.Caller{Subject: "ann", Plan: ratelimit.UnlimitedPlan("staff"), Also: []ratelimit.Charge{{Subject: "all", Plan: contract.Two}}}
				conn := start(t, handler, limited(t, contract.NewClock().Engine(t), contract.Caller(charged), opts)...)
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
				if c.logged == "" && logs.Text() != "" || !strings.Contains(logs.Text(), c.logged) {
					t.Errorf("the log has %q, want %q", logs.Text(), c.logged)
				}
			})
		})
	}
}

// An error of identify whose status is OK refuses the call as any other error.
func TestIdentifyFailsWithOK(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		errs, logs := contract.Logged()
		identify := func(*http.Request) (ratelimit.Caller, error) { return ratelimit.Caller{}, okError{} }
		expect(t, call(t.Context(), start(t, same, limited(t, contract.NewClock().Engine(t), identify, gatehousegrpc.Options{Errors: errs})...)), codes.Internal, "")
		if !strings.Contains(logs.Text(), "secret-reason") {
			t.Errorf("the log has %q", logs.Text())
		}
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
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
				errs, logs := contract.Logged()
				identify := func(*http.Request) (ratelimit.Caller, error) { return ratelimit.Caller{}, c.err }
				a := call(t.Context(), start(t, same, limited(t, contract.NewClock().Engine(t), identify, gatehousegrpc.Options{Errors: errs})...))
				expect(t, a, c.code, c.message)
				if c.code == codes.Internal && !strings.Contains(logs.Text(), "secret-host") {
					t.Errorf("the log has %q", logs.Text())
				}
				a = call(t.Context(), start(t, same, limited(t, contract.NewClock().Engine(t), identify, gatehousegrpc.Options{Shadow: true})...))
				expect(t, a, codes.OK, "")
			})
		})
	}
}
