package gatehouseconnect_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/animalstore/gatehouse/adapters/gatehouseconnect"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

var two = ratelimit.MustPlan("two", ratelimit.Penalty{}, ratelimit.PerMinute(2), ratelimit.PerDay(100))

// A client that waits as long as RetryInfo says is admitted, and one that waits a
// millisecond less is not. A stream is charged once.
func TestLimited(t *testing.T) {
	everyClient(t, func(t *testing.T, c client) {
		at := newClock()
		url := start(t, same, limited(t, at.engine(t), caller(ratelimit.Caller{Subject: "ann", Plan: two}), gatehouseconnect.Options{}))
		for _, left := range []string{"1", "0"} {
			a := c.call(t.Context(), url)
			expect(t, a, 0, "")
			if a.field("X-RateLimit-Limit") != "2" || a.field("X-RateLimit-Remaining") != left || a.field("X-RateLimit-Reset") != "1795348860" || a.field("Retry-After") != "" {
				t.Errorf("header %v, want 2, %s left until 12:01", a.fields, left)
			}
		}
		at.advance(time.Second / 2)
		a := c.call(t.Context(), url)
		expect(t, a, connect.CodeResourceExhausted, "You have reached the limit of 2 requests per minute. Wait as long as Retry-After says.")
		if a.field("X-RateLimit-Remaining") != "0" || a.field("Retry-After") != "17" || a.retryDelay() != 16500*time.Millisecond || a.reason() != "RATE_LIMIT_EXCEEDED" {
			t.Errorf("refused with %v, RetryInfo %v, reason %s", a.fields, a.retryDelay(), a.reason())
		}
		want := &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{QuotaId: "minute", QuotaValue: 2, Description: "2/minute"}}}
		if diff := cmp.Diff(want, detail[*errdetails.QuotaFailure](a.err), protocmp.Transform()); diff != "" {
			t.Errorf("QuotaFailure (-want +got):\n%s", diff)
		}
		at.advance(a.retryDelay() - time.Millisecond)
		again := c.call(t.Context(), url)
		expect(t, again, connect.CodeResourceExhausted, "")
		at.advance(again.retryDelay())
		expect(t, c.call(t.Context(), url), 0, "")
	})
}

func TestRefusals(t *testing.T) {
	ban := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 2, Max: 2 * time.Hour, Forgive: time.Hour}
	banned := ratelimit.MustPlan("banned", ban, ratelimit.PerMinute(1))
	for name, c := range map[string]struct {
		caller  ratelimit.Caller
		before  int
		code    connect.Code
		reason  string
		message string
		retry   time.Duration
		fields  string
	}{
		"banned": {
			ratelimit.Caller{Subject: "a", Plan: banned, Kind: ratelimit.KindAPIKey}, 2, connect.CodeResourceExhausted, "API_KEY_BANNED",
			"This API key is temporarily banned because it kept sending requests after reaching its limit. Wait as long as Retry-After says.",
			time.Hour, "0/1",
		},
		"suspended": {
			ratelimit.Caller{Subject: "a", Plan: ratelimit.SuspendedPlan("debtor")}, 0, connect.CodePermissionDenied, "PLAN_SUSPENDED",
			"Your plan is suspended and allows no requests. Contact the operator of this service.", 0, "0/0",
		},
		"unlimited": {ratelimit.Caller{Subject: "a", Plan: ratelimit.UnlimitedPlan("staff")}, 3, 0, "", "", 0, "/"},
	} {
		t.Run(name, func(t *testing.T) {
			everyClient(t, func(t *testing.T, cl client) {
				errs, logs := logged()
				url := start(t, same, limited(t, newClock().engine(t), caller(c.caller), gatehouseconnect.Options{Errors: errs}))
				for range c.before {
					cl.call(t.Context(), url)
				}
				a := cl.call(t.Context(), url)
				expect(t, a, c.code, c.message)
				if a.reason() != c.reason || a.retryDelay() != c.retry {
					t.Errorf("reason %s, retry after %v, want %s, %v", a.reason(), a.retryDelay(), c.reason, c.retry)
				}
				// A client would take a RetryInfo of nothing for an invitation.
				if info := detail[*errdetails.RetryInfo](a.err); (info != nil) != (c.retry > 0) {
					t.Errorf("RetryInfo %v, want one only for a wait of %v", info, c.retry)
				}
				if failure := detail[*errdetails.QuotaFailure](a.err); (failure != nil) != (c.reason == "RATE_LIMIT_EXCEEDED") {
					t.Errorf("QuotaFailure %v for %s", failure, c.reason)
				}
				if fields := a.field("X-RateLimit-Remaining") + "/" + a.field("X-RateLimit-Limit"); fields != c.fields {
					t.Errorf("X-RateLimit %s, want %s", fields, c.fields)
				}
				if want := c.code == connect.CodeInternal; want != (logs() != "") {
					t.Errorf("the log has %q", logs())
				}
			})
		})
	}
}

// Unary calls of the Connect protocol have the status and the fields of HTTP.
func TestConnectUnaryIsHTTP(t *testing.T) {
	one := ratelimit.MustPlan("one", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	url := start(t, same, limited(t, newClock().engine(t), caller(ratelimit.Caller{Subject: "ann", Plan: one}), gatehouseconnect.Options{}))
	for _, status := range []int{200, 429} {
		resp, err := http.Post(url+unaryMethod, "application/json", strings.NewReader(`"hello"`))
		if err != nil {
			t.Fatal(err)
		}
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
		around, err := limit.New(newClock().engine(t), func(*http.Request) (ratelimit.Caller, error) {
			return ratelimit.Caller{Subject: "ann", Plan: two}, nil
		}, limit.Options{})
		if err != nil {
			t.Fatal(err)
		}
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

func TestCostAndShadow(t *testing.T) {
	everyClient(t, func(t *testing.T, c client) {
		errs, _ := logged()
		var seen []string
		opts := gatehouseconnect.Options{
			Errors: errs,
			Cost: func(r *http.Request) int64 {
				if r.URL.Path != c.method {
					t.Errorf("Cost gets the method %q", r.URL.Path)
				}
				return 3
			},
			Observe: func(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
				if !errors.Is(err, ratelimit.ErrCostExceedsLimit) {
					t.Errorf("Observe gets %v", err)
				}
				seen = append(seen, r.URL.Path+" "+c.Subject+" "+d.Outcome.String())
			},
		}
		ann := caller(ratelimit.Caller{Subject: "ann", Plan: two})
		a := c.call(t.Context(), start(t, same, limited(t, newClock().engine(t), ann, opts)))
		expect(t, a, connect.CodeInvalidArgument, "This call costs 3 units, but your plan allows at most 2/minute.")
		opts.Shadow = true
		a = c.call(t.Context(), start(t, same, limited(t, newClock().engine(t), ann, opts)))
		expect(t, a, 0, "")
		if want := c.method + " ann undecided"; len(seen) != 2 || seen[0] != want || seen[1] != want {
			t.Errorf("observed %v, want twice %s", seen, want)
		}
	})
}

// A handler settles what a call costs. A settled call is not given back.
func TestSettle(t *testing.T) {
	everyClient(t, func(t *testing.T, c client) {
		engine, hundred := newClock().engine(t), ratelimit.MustPlan("hundred", ratelimit.Penalty{}, ratelimit.PerMinute(100))
		handler := func(ctx context.Context, _ string) error {
			if err := limit.FromContext(ctx).Settle(ctx, 7); err != nil {
				t.Error(err)
			}
			return errors.New("after the work")
		}
		ann := caller(ratelimit.Caller{Subject: "ann", Plan: hundred})
		a := c.call(t.Context(), start(t, handler, limited(t, engine, ann, gatehouseconnect.Options{Context: true, Refund: true})))
		expect(t, a, connect.CodeUnknown, "after the work")
		if n := used(t, engine, "ann", hundred); n != 7 {
			t.Errorf("%d units used, want 7", n)
		}
	})
}
