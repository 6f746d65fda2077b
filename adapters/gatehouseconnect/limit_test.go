package gatehouseconnect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/animalstore/gatehouse/adapters/gatehouseconnect"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// ann is the caller of most tests.
var ann = contract.Caller(ratelimit.Caller{Subject: "ann", Plan: contract.Two})

// NewRequire finds what the middleware Identify of package bearer has put into the context.
func TestIdentifyAsMiddleware(t *testing.T) {
	everyClient(t, func(t *testing.T, cl client) {
		auth := testcheck.Must(bearer.New("test", func(context.Context, string) (string, error) { return "ann", nil }, bearer.Options{}))
		url := start(t, same, []connect.Interceptor{gatehouseconnect.NewRequire(auth)}, auth.Identify)
		expect(t, cl.call(t.Context(), url), connect.CodeUnauthenticated, "")
		cl.header = http.Header{"Authorization": {"Bearer good"}}
		expect(t, cl.call(t.Context(), url), 0, "")
	})
}

// On the client side the interceptors do nothing, also those that would refuse every call.
func TestCallsOfClients(t *testing.T) {
	everyClient(t, func(t *testing.T, cl client) {
		auth := testcheck.Must(bearer.New("test", func(context.Context, string) (string, error) { return "", bearer.ErrInvalid }, bearer.Options{}))
		refusing := append(limited(contract.NewClock().Engine(t), contract.Caller(ratelimit.Caller{}), gatehouseconnect.Options{}), gatehouseconnect.NewRequire(auth))
		cl.opts = append(slices.Clone(cl.opts), connect.WithInterceptors(refusing...))
		expect(t, cl.call(t.Context(), start(t, same, nil)), 0, "")
	})
}

// What was not set is refused before the first call.
func TestAuthenticatorMustNotBeNil(t *testing.T) {
	for name, construct := range map[string]func(*bearer.Authenticator[string]) connect.Interceptor{
		"NewIdentify": gatehouseconnect.NewIdentify[string], "NewRequire": gatehouseconnect.NewRequire[string],
	} {
		func() {
			defer func() {
				if p := recover(); p != "gatehouseconnect: "+name+": the authenticator must not be nil" {
					t.Errorf("%s panics with %v", name, p)
				}
			}()
			construct(nil)
		}()
	}
}

// A refusal has details with the exact time to wait.
func TestDetails(t *testing.T) {
	everyClient(t, func(t *testing.T, c client) {
		at := contract.NewClock()
		at.Advance(time.Second / 2)
		url := start(t, same, limited(at.Engine(t), ann, gatehouseconnect.Options{}))
		for range 2 {
			expect(t, c.call(t.Context(), url), 0, "")
		}
		a := c.call(t.Context(), url)
		expect(t, a, connect.CodeResourceExhausted, "")
		if a.retryDelay() != 16500*time.Millisecond {
			t.Errorf("RetryInfo %v, want 16.5s", a.retryDelay())
		}
		want := &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{QuotaId: "minute", QuotaValue: 2, Description: "2/minute"}}}
		if diff := cmp.Diff(want, detail[*errdetails.QuotaFailure](a.err), protocmp.Transform()); diff != "" {
			t.Errorf("QuotaFailure (-want +got):\n%s", diff)
		}
		info := &errdetails.ErrorInfo{Reason: "RATE_LIMIT_EXCEEDED", Domain: "github.com/animalstore/gatehouse"}
		if diff := cmp.Diff(info, detail[*errdetails.ErrorInfo](a.err), protocmp.Transform()); diff != "" {
			t.Errorf("ErrorInfo (-want +got):\n%s", diff)
		}
	})
}

// Unary calls of the Connect protocol have the status and the fields of HTTP.
func TestConnectUnaryIsHTTP(t *testing.T) {
	one := ratelimit.MustPlan("one", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	url := start(t, same, limited(contract.NewClock().Engine(t), contract.Caller(ratelimit.Caller{Subject: "ann", Plan: one}), gatehouseconnect.Options{}))
	for _, status := range []int{200, 429} {
		resp := testcheck.Must(http.Post(url+contract.Unary, "application/json", strings.NewReader(`"hello"`)))
		_ = resp.Body.Close()
		if resp.StatusCode != status || resp.Header.Get("X-RateLimit-Remaining") != "0" {
			t.Errorf("status %d, header %v, want %d", resp.StatusCode, resp.Header, status)
		}
		if retry := resp.Header.Get("Retry-After"); (retry == "17") != (status == 429) {
			t.Errorf("Retry-After %q with %d", retry, status)
		}
	}
}

// What the package's page says of the middleware around a Connect handler.
func TestMiddlewareInPlaceOfInterceptor(t *testing.T) {
	everyClient(t, func(t *testing.T, c client) {
		around := testcheck.Must(limit.New(contract.NewClock().Engine(t), ann, limit.Options{}))
		url := start(t, same, nil, around)
		for range 2 {
			c.call(t.Context(), url)
		}
		a := c.call(t.Context(), url)
		if code := connect.CodeOf(a.err); code != connect.CodeUnavailable || a.retryDelay() != 0 {
			t.Errorf("%v, RetryInfo %v; want unavailable without RetryInfo", a.err, a.retryDelay())
		}
	})
}

// An error without a code is no answer, nor is a nil one. A refusal without a wait has no
// RetryInfo, which a client would take for an invitation.
func TestErrorsThatAreNone(t *testing.T) {
	for _, err := range []error{connect.NewError(0, errors.New("secret-host")), fmt.Errorf("secret-host: %w", (*connect.Error)(nil))} {
		everyClient(t, func(t *testing.T, cl client) {
			errs, _ := contract.Logged()
			identify := func(r *http.Request) (ratelimit.Caller, error) {
				if r.URL.Path != cl.method || !clientip.FromRemoteAddr().Addr(r).IsLoopback() || r.Header.Get("X-Tenant") != "acme" {
					t.Errorf("identify gets %+v", r)
				}
				return ratelimit.Caller{}, err
			}
			cl.header = http.Header{"X-Tenant": {"acme"}}
			a := cl.call(t.Context(), start(t, same, limited(contract.NewClock().Engine(t), identify, gatehouseconnect.Options{Options: limit.Options{Errors: errs}})))
			expect(t, a, connect.CodeInternal, "The service failed to answer this request.")
			if info := detail[*errdetails.RetryInfo](a.err); info != nil {
				t.Errorf("RetryInfo %v, want none", info)
			}
		})
	}
}

// ChargeIf is asked once, about the error of the handler or a panic, with the context of the
// handler; and not about a deadline, which stays charged.
func TestChargeIf(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		panics bool
		used   int64
	}{
		"success":              {nil, false, 0},
		"a failed sign-in":     {connect.NewError(connect.CodeUnauthenticated, errors.New("wrong password")), false, 1},
		"not modified":         {connect.NewNotModifiedError(http.Header{"Etag": {`"1"`}}), false, 0},
		"an error of its own":  {errors.New("disk full"), false, 0},
		"a timeout of its own": {connect.NewError(connect.CodeUnavailable, context.DeadlineExceeded), false, 0},
		"a deadline":           {fmt.Errorf("query: %w", os.ErrDeadlineExceeded), false, 1},
		"panic":                {connect.NewError(connect.CodeInternal, nil), true, 0},
	} {
		everyClient(t, func(t *testing.T, cl client) {
			engine, asked := contract.NewClock().Engine(t), 0
			opts := gatehouseconnect.Options{Options: limit.Options{Settle: true}, ChargeIf: func(r *http.Request, err error) bool {
				asked++
				if !c.panics && !errors.Is(err, c.err) || connect.CodeOf(err) != connect.CodeOf(c.err) || limit.FromContext(r.Context()) == nil {
					t.Errorf("%s: ChargeIf gets %+v, %v; want %v", name, r, err, c.err)
				}
				return connect.CodeOf(err) == connect.CodeUnauthenticated
			}}
			handler := func(context.Context, string) (string, error) {
				if c.panics {
					panic("bug")
				}
				return "", c.err
			}
			cl.call(t.Context(), start(t, handler, limited(engine, ann, opts)))
			asks := 1
			if errors.Is(c.err, os.ErrDeadlineExceeded) {
				asks = 0
			}
			if n := contract.Used(t, engine, "ann", contract.Two); n != c.used || asked != asks {
				t.Errorf("%s: %d units used, want %d; asked %d times, want %d", name, n, c.used, asked, asks)
			}
		})
	}
}
