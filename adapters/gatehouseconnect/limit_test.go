package gatehouseconnect_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/animalstore/gatehouse/adapters/gatehouseconnect"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A client that waits as long as RetryInfo says is admitted, and one that waits a
// millisecond less is not. A stream is charged once.
func TestLimited(t *testing.T) {
	everyClient(t, func(t *testing.T, c client) {
		at := contract.NewClock()
		url := start(t, same, limited(at.Engine(t), contract.Caller(ratelimit.Caller{Subject: "ann", Plan: contract.Two}), gatehouseconnect.Options{}))
		for _, left := range []string{"1", "0"} {
			a := c.call(t.Context(), url)
			expect(t, a, 0, "")
			if a.field("X-RateLimit-Limit") != "2" || a.field("X-RateLimit-Remaining") != left || a.field("X-RateLimit-Reset") != "1795348860" || a.field("Retry-After") != "" {
				t.Errorf("header %v, want 2, %s left until 12:01", a.fields, left)
			}
		}
		at.Advance(time.Second / 2)
		a := c.call(t.Context(), url)
		expect(t, a, connect.CodeResourceExhausted, "You have reached the limit of 2 requests per minute. Wait as long as Retry-After says.")
		if a.field("X-RateLimit-Remaining") != "0" || a.field("Retry-After") != "17" || a.retryDelay() != 16500*time.Millisecond || a.reason() != "RATE_LIMIT_EXCEEDED" {
			t.Errorf("refused with %v, RetryInfo %v, reason %s", a.fields, a.retryDelay(), a.reason())
		}
		want := &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{QuotaId: "minute", QuotaValue: 2, Description: "2/minute"}}}
		if diff := cmp.Diff(want, detail[*errdetails.QuotaFailure](a.err), protocmp.Transform()); diff != "" {
			t.Errorf("QuotaFailure (-want +got):\n%s", diff)
		}
		at.Advance(a.retryDelay() - time.Millisecond)
		again := c.call(t.Context(), url)
		expect(t, again, connect.CodeResourceExhausted, "")
		at.Advance(again.retryDelay())
		expect(t, c.call(t.Context(), url), 0, "")
	})
}

// Unary calls of the Connect protocol have the status and the fields of HTTP.
func TestConnectUnaryIsHTTP(t *testing.T) {
	one := ratelimit.MustPlan("one", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	url := start(t, same, limited(contract.NewClock().Engine(t), contract.Caller(ratelimit.Caller{Subject: "ann", Plan: one}), gatehouseconnect.Options{}))
	for _, status := range []int{200, 429} {
		resp := must(http.Post(url+unaryMethod, "application/json", strings.NewReader(`"hello"`)))
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
		around := must(limit.New(contract.NewClock().Engine(t), func(*http.Request) (ratelimit.Caller, error) {
			return ratelimit.Caller{Subject: "ann", Plan: contract.Two}, nil
		}, limit.Options{}))
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
