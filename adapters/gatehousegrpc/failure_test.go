package gatehousegrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/ratelimit"
)

// down is an engine that does not answer.
type down struct{}

func (down) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, fmt.Errorf("%w: 10.0.0.7 does not answer", ratelimit.ErrUnavailable)
}

func TestEngineUnavailable(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		errs, logs := contract.Logged()
		ann := contract.Caller(ratelimit.Caller{Subject: "ann", Plan: contract.Two})
		a := call(t.Context(), start(t, same, limited(t, down{}, ann, gatehousegrpc.Options{Errors: errs})...))
		expect(t, a, codes.Unavailable, "The service cannot check your rate limit at the moment. Wait as long as Retry-After says.")
		if a.retryDelay() != time.Second || a.field("retry-after") != "1" || a.field("x-ratelimit-remaining") != "0" || a.field("grpc-retry-pushback-ms") != "1000" {
			t.Errorf("RetryInfo %v, trailer %v", a.retryDelay(), a.trailer)
		}
		if !strings.Contains(logs.Text(), "level=ERROR") || !strings.Contains(logs.Text(), "10.0.0.7") {
			t.Errorf("the log has %q", logs.Text())
		}
		a = call(t.Context(), start(t, same, limited(t, down{}, ann, gatehousegrpc.Options{FailOpen: true})...))
		expect(t, a, codes.OK, "")
		if a.field("x-ratelimit-remaining") != "2" || a.field("retry-after") != "" {
			t.Errorf("served with header %v", a.header)
		}
		// What is wrong in the service is an error in every failure mode.
		noSubject := contract.Caller(ratelimit.Caller{Plan: contract.Two})
		a = call(t.Context(), start(t, same, limited(t, down{}, noSubject, gatehousegrpc.Options{FailOpen: true, Errors: errs})...))
		expect(t, a, codes.Internal, "The service failed to answer this request.")
	})
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
