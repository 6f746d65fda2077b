package gatehouseconnect_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/animalstore/gatehouse/adapters/gatehouseconnect"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Deny replaces the answer to a limited call. No error of it admits the call, and the
// fields are always those of the default.
func TestDeny(t *testing.T) {
	const (
		defaultText = "You have reached the limit of 2 requests per minute. Wait as long as Retry-After says."
		internal    = "The service failed to answer this request."
	)
	own := connect.NewError(connect.CodeUnavailable, errors.New("slow down"))
	own.Meta().Set("X-Support", "call us")
	zero := connect.NewError(0, errors.New("secret-reason"))
	for name, c := range map[string]struct {
		err     error
		code    connect.Code
		message string
		reason  string
		details bool // RetryInfo and QuotaFailure
		logged  string
	}{
		"nil":             {nil, connect.CodeResourceExhausted, defaultText, "RATE_LIMIT_EXCEEDED", true, ""},
		"of Connect":      {own, connect.CodeUnavailable, "slow down", "", false, ""},
		"a nil Error":     {(*connect.Error)(nil), connect.CodeResourceExhausted, defaultText, "RATE_LIMIT_EXCEEDED", true, ""},
		"without a code":  {zero, connect.CodeInternal, internal, "INTERNAL", true, "secret-reason"},
		"a public error":  {apierror.New(http.StatusTooManyRequests, "slow_down", "Bitte langsamer."), connect.CodeResourceExhausted, "Bitte langsamer.", "SLOW_DOWN", true, ""},
		"not UTF-8":       {apierror.New(http.StatusTooManyRequests, "slow_down\xff", "Bitte \xfflangsamer."), connect.CodeResourceExhausted, "Bitte \uFFFDlangsamer.", "SLOW_DOWN\uFFFD", true, ""},
		"a private error": {errors.New("secret-reason"), connect.CodeInternal, internal, "INTERNAL", true, "gatehouseconnect: Options.Deny: secret-reason"},
	} {
		t.Run(name, func(t *testing.T) {
			everyClient(t, func(t *testing.T, cl client) {
				errs, logs := contract.Logged()
				served, denied := 0, 0
				handler := func(context.Context, string) error { served++; return nil }
				opts := gatehouseconnect.Options{
					Errors: errs, Headers: limit.XRateLimit | limit.DraftRateLimit,
					Deny: func(r *http.Request, caller ratelimit.Caller, d ratelimit.Decision) error {
						denied++
						if r.URL.Path != cl.method || r.Header.Get("Accept-Language") != "de" {
							t.Errorf("Deny gets the call %+v", r)
						}
						if caller.Subject != "ann" || d.Outcome != ratelimit.Limited || d.RetryAfter != 17*time.Second {
							t.Errorf("Deny gets %+v, %+v", caller, d)
						}
						return c.err
					},
				}
				cl.header = http.Header{"Accept-Language": {"de"}}
				url := start(t, handler, limited(contract.NewClock().Engine(t), contract.Caller(ratelimit.Caller{Subject: "ann", Plan: contract.Two}), opts))
				for range 2 {
					expect(t, cl.call(t.Context(), url), 0, "")
				}
				a := cl.call(t.Context(), url)
				expect(t, a, c.code, c.message)
				if served != 2 || denied != 1 {
					t.Errorf("served %d calls, want 2; Deny called %d times, want once", served, denied)
				}
				if a.field("X-RateLimit-Remaining") != "0" || a.field("RateLimit") == "" || a.field("Retry-After") != "17" {
					t.Errorf("fields %v, want those of the default", a.fields)
				}
				if (a.field("X-Support") == "call us") != (name == "of Connect") {
					t.Errorf("fields %v, want those of the error too", a.fields)
				}
				quota := detail[*errdetails.QuotaFailure](a.err)
				if a.reason() != c.reason || (a.retryDelay() == 17*time.Second) != c.details || (len(quota.GetViolations()) == 1) != c.details {
					t.Errorf("error %v, reason %q, want the reason %q, and the other details: %t", a.err, a.reason(), c.reason, c.details)
				}
				if c.logged == "" && logs.Text() != "" || !strings.Contains(logs.Text(), c.logged) {
					t.Errorf("the log has %q, want %q", logs.Text(), c.logged)
				}
			})
		})
	}
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
