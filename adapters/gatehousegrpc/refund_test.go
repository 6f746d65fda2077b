package gatehousegrpc_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// The retry policy of a client that was not written for this package.
const retries = `{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 3, "initialBackoff": "3600s", "maxBackoff": "3600s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE", "INTERNAL"]}}]}`

// A client with a retry policy waits as long as the server says, instead of its own
// backoff of an hour, and is admitted.
func TestRetryPolicyWaits(t *testing.T) {
	at := contract.NewClock()
	at.Advance(17*time.Second - 20*time.Millisecond) // before the end of the minute
	one := ratelimit.MustPlan("one", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	var decisions atomic.Int32
	opts := gatehousegrpc.Options{Options: limit.Options{Observe: func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, _ error) {
		decisions.Add(1)
		at.Advance(d.RetryAfter) // while the client waits
	}}}
	addr := serve(t, same, limited(t, at.Engine(t), contract.Caller(ratelimit.Caller{Subject: "ann", Plan: one}), opts)...)
	conn := dial(t, addr, grpc.WithDefaultServiceConfig(retries))
	expect(t, call(t.Context(), conn, "hello"), codes.OK, "")
	expect(t, call(t.Context(), conn, "hello"), codes.OK, "")
	if n := decisions.Load(); n != 3 {
		t.Errorf("%d decisions, want 3: one call, one refusal, one retry", n)
	}
}

// A call that was admitted and fails, also by a panic, is retried as without the interceptor.
func TestFailedCallsAreRetried(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn, string) answer) {
		at := contract.NewClock()
		var calls atomic.Int32
		failing := func(ctx context.Context, text string) (string, error) {
			n := calls.Add(1)
			if n < 3 {
				_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "1"))
			}
			switch n {
			case 1:
				return "", status.Error(codes.Unavailable, "again")
			case 2:
				panic("no")
			}
			return text, nil
		}
		engine := at.Engine(t)
		limits := limited(t, engine, ann, gatehousegrpc.Options{ChargeIf: gatehousegrpc.NotServerError})
		addr := serve(t, failing, append(interceptors(recoverUnary, recoverStream), limits...)...)
		conn := dial(t, addr, grpc.WithDefaultServiceConfig(retries))
		expect(t, call(t.Context(), conn, "hello"), codes.OK, "")
		if n := calls.Load(); n != 3 {
			t.Errorf("the handler was called %d times, want 3", n)
		}
		if n := contract.Used(t, engine, "ann", contract.Two); n != 1 {
			t.Errorf("%d units used, want 1: the failed attempts are given back", n)
		}
	})
}
