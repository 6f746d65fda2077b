package gatehouseconnect_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A translation sees the header of a call that is not authenticated.
func TestTranslate(t *testing.T) {
	everyClient(t, func(t *testing.T, cl client) {
		errs, _ := contract.Logged()
		errs.Translate = func(r *http.Request, e *apierror.Error) string {
			return fmt.Sprint(r.Header.Get("Accept-Language"), " ", e.Code)
		}
		cl.header = http.Header{"Accept-Language": {"de"}}
		auth := must(bearer.New("test", func(context.Context, string) (string, error) { return "", bearer.ErrInvalid }, bearer.Options{Errors: errs}))
		url := start(t, same, []connect.Interceptor{gatehouseconnect.NewIdentify(auth), gatehouseconnect.NewRequire(auth)})
		expect(t, cl.call(t.Context(), url), connect.CodeUnauthenticated, "de missing_api_key")
	})
}

func newAuth(t *testing.T) *bearer.Authenticator[apikey.Principal] {
	t.Helper()
	errs, _ := contract.Logged()
	return must(bearer.New("test", func(_ context.Context, token string) (apikey.Principal, error) {
		switch token {
		case "good":
			return apikey.Principal{Owner: "ann", Subject: "owner:ann", Plan: contract.Two}, nil
		case "down":
			return apikey.Principal{}, errors.New("the store does not answer")
		}
		return apikey.Principal{}, bearer.ErrInvalid
	}, bearer.Options{Errors: errs, Observe: func(r *http.Request, _ bearer.Outcome, _ error) {
		if r.RemoteAddr == "" {
			t.Error("a call is observed without the address of its client")
		}
	}}))
}

// identify counts a call for the owner of its key, and otherwise for its network.
func identify(r *http.Request) (ratelimit.Caller, error) {
	if p, ok := bearer.FromContext[apikey.Principal](r.Context()); ok {
		return ratelimit.Caller{Subject: p.Subject, Plan: p.Plan, Kind: ratelimit.KindAPIKey}, nil
	}
	guests := ratelimit.MustPlan("guests", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	return ratelimit.Caller{Subject: clientip.NetworkSubject(clientip.FromRemoteAddr().Addr(r)), Plan: guests, Kind: ratelimit.KindNetwork}, nil
}

func TestBearer(t *testing.T) {
	whoami := func(ctx context.Context, _ string) error {
		if p, ok := bearer.FromContext[apikey.Principal](ctx); !ok || p.Owner != "ann" {
			t.Errorf("the handler finds %v, %v", p, ok)
		}
		return nil
	}
	for name, c := range map[string]struct {
		authorization []string
		code          connect.Code
		message       string
		field, value  string
		retry         time.Duration
	}{
		"valid": {[]string{"Bearer good"}, 0, "", "X-RateLimit-Limit", "2", 0},
		"missing": {nil, connect.CodeUnauthenticated, "No API key was sent. Send it as Authorization: Bearer <API key>.",
			"WWW-Authenticate", `Bearer realm="test"`, 0},
		"invalid": {[]string{"Bearer bad"}, connect.CodeUnauthenticated, "The API key is not valid.",
			"WWW-Authenticate", `Bearer realm="test", error="invalid_token", error_description="The API key is not valid"`, 0},
		"two": {[]string{"Bearer good", "Bearer good"}, connect.CodeInvalidArgument,
			"The request has more than one Authorization header. Send exactly one.", "X-RateLimit-Limit", "1", 0},
		"store is down": {[]string{"Bearer down"}, connect.CodeUnavailable,
			"The API key cannot be checked at the moment. Wait as long as Retry-After says.", "Retry-After", "5", 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			everyClient(t, func(t *testing.T, cl client) {
				auth := newAuth(t)
				limiting := limited(contract.NewClock().Engine(t), identify, gatehouseconnect.Options{})
				required := append(limiting, gatehouseconnect.NewRequire(auth))
				cl.header = http.Header{"Authorization": c.authorization}
				for where, url := range map[string]string{
					"interceptor": start(t, whoami, append([]connect.Interceptor{gatehouseconnect.NewIdentify(auth)},
						append(limited(contract.NewClock().Engine(t), identify, gatehouseconnect.Options{}), gatehouseconnect.NewRequire(auth))...)),
					"middleware": start(t, whoami, required, auth.Identify),
				} {
					a := cl.call(t.Context(), url)
					expect(t, a, c.code, c.message)
					if a.field(c.field) != c.value || a.retryDelay() != c.retry {
						t.Errorf("%s: %s: %q, RetryInfo %v, want %q, %v", where, c.field, a.field(c.field), a.retryDelay(), c.value, c.retry)
					}
					if c.code != 0 { // a refused call is counted too, for the network
						expect(t, cl.call(t.Context(), url), connect.CodeResourceExhausted, "")
					}
				}
			})
		})
	}
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

type noKeys struct{}

func (noKeys) Lookup(context.Context, apikey.Digest) (apikey.Record[apikey.Principal], error) {
	return apikey.Record[apikey.Principal]{}, apikey.ErrUnknown
}

// A Verifier counts guesses for the network of the peer.
func TestGuesses(t *testing.T) {
	everyClient(t, func(t *testing.T, cl client) {
		guesses := ratelimit.MustPlan("guesses", ratelimit.Penalty{}, ratelimit.Quota{Limit: 1, Window: 8784 * time.Hour})
		v := must(apikey.NewVerifier(nil, noKeys{}, apikey.Options{Guesses: guesses}))
		auth := must(bearer.New("test", v.Verify, bearer.Options{}))
		handler := func(context.Context, string) error { return nil }
		url := start(t, handler, []connect.Interceptor{gatehouseconnect.NewIdentify(auth), gatehouseconnect.NewRequire(auth)})
		for i, code := range []connect.Code{connect.CodeUnauthenticated, connect.CodeResourceExhausted} {
			cl.header = http.Header{"Authorization": {fmt.Sprint("Bearer guess", i)}}
			a := cl.call(t.Context(), url)
			if connect.CodeOf(a.err) != code || (a.field("Retry-After") != "") != (i == 1) || (a.retryDelay() > 0) != (i == 1) {
				t.Errorf("guess %d: %v with Retry-After %q and RetryInfo %v, want %v", i, a.err, a.field("Retry-After"), a.retryDelay(), code)
			}
		}
	})
}

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
