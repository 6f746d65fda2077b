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
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit"
)

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
