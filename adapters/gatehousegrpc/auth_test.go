package gatehousegrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
)

// authenticated are the interceptors of a service that knows "good" and counts all
// other calls for their networks.
func authenticated(t *testing.T) []grpc.ServerOption {
	t.Helper()
	errs, _ := contract.Logged()
	verify := func(_ context.Context, token string) (apikey.Principal, error) {
		switch token {
		case "good":
			return apikey.Principal{Owner: "ann", Subject: "owner:ann", Plan: contract.Two}, nil
		case "down":
			return apikey.Principal{}, errors.New("the store does not answer")
		}
		return apikey.Principal{}, bearer.ErrInvalid
	}
	auth := must(bearer.New("test", verify, bearer.Options{Errors: errs, Observe: func(r *http.Request, _ bearer.Outcome, _ error) {
		if _, ok := metadata.FromIncomingContext(r.Context()); !ok || r.RemoteAddr == "" || r.Header.Get("User-Agent") == "" {
			t.Error("a call is observed without its context, its metadata or the address of its client")
		}
	}}))
	guests := ratelimit.MustPlan("guests", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	limit := limited(t, contract.NewClock().Engine(t), func(r *http.Request) (ratelimit.Caller, error) {
		if p, ok := bearer.FromContext[apikey.Principal](r.Context()); ok {
			return ratelimit.Caller{Subject: p.Subject, Plan: p.Plan, Kind: ratelimit.KindAPIKey}, nil
		}
		addr := clientip.FromRemoteAddr().Addr(r)
		if addr != netip.MustParseAddr("127.0.0.1") {
			t.Errorf("the peer has the address %v", addr)
		}
		return ratelimit.Caller{Subject: clientip.NetworkSubject(addr), Plan: guests, Kind: ratelimit.KindNetwork}, nil
	}, gatehousegrpc.Options{})
	return slices.Concat(interceptors(gatehousegrpc.Identify(auth)), limit, interceptors(gatehousegrpc.Require(auth)))
}

func TestBearer(t *testing.T) {
	whoami := func(ctx context.Context, _ string) (string, error) {
		if p, ok := bearer.FromContext[apikey.Principal](ctx); !ok || p.Owner != "ann" || bearer.OutcomeFrom(ctx) != bearer.Authenticated {
			t.Errorf("the handler finds %v, %v", p, ok)
		}
		return "", nil
	}
	for name, c := range map[string]struct {
		authorization []string
		code          codes.Code
		message       string
		field, value  string
		retry         time.Duration
	}{
		"valid":   {[]string{"Bearer good"}, codes.OK, "", "x-ratelimit-limit", "2", 0},
		"missing": {nil, codes.Unauthenticated, "No API key was sent. Send it as Authorization: Bearer <API key>.", "www-authenticate", `Bearer realm="test"`, 0},
		"invalid": {[]string{"Bearer bad"}, codes.Unauthenticated, "The API key is not valid.",
			"www-authenticate", `Bearer realm="test", error="invalid_token", error_description="The API key is not valid"`, 0},
		"two": {[]string{"Bearer good", "Bearer good"}, codes.InvalidArgument, "The request has more than one Authorization header. Send exactly one.", "x-ratelimit-limit", "1", 0},
		"store is down": {[]string{"Bearer down"}, codes.Unavailable,
			"The API key cannot be checked at the moment. Wait as long as Retry-After says.", "retry-after", "5", 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
				conn := start(t, whoami, authenticated(t)...)
				ctx := metadata.NewOutgoingContext(t.Context(), metadata.MD{"authorization": c.authorization})
				a := call(ctx, conn)
				expect(t, a, c.code, c.message)
				if a.field(c.field) != c.value || a.retryDelay() != c.retry {
					t.Errorf("%s: %q, RetryInfo %v, want %q, %v", c.field, a.field(c.field), a.retryDelay(), c.value, c.retry)
				}
				// A refused call is counted too, for the network.
				if c.code != codes.OK {
					expect(t, call(ctx, conn), codes.ResourceExhausted, "")
				}
			})
		})
	}
}

type noKeys struct{}

func (noKeys) Lookup(context.Context, apikey.Digest) (apikey.Record[apikey.Principal], error) {
	return apikey.Record[apikey.Principal]{}, apikey.ErrUnknown
}

// A Verifier counts guesses for the network of the peer.
func TestGuesses(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		guesses := ratelimit.MustPlan("guesses", ratelimit.Penalty{}, ratelimit.Quota{Limit: 1, Window: 8784 * time.Hour})
		v := must(apikey.NewVerifier(nil, noKeys{}, apikey.Options{Guesses: guesses}))
		auth := must(bearer.New("test", v.Verify, bearer.Options{}))
		conn := start(t, same, slices.Concat(interceptors(gatehousegrpc.Identify(auth)), interceptors(gatehousegrpc.Require(auth)))...)
		for i, code := range []codes.Code{codes.Unauthenticated, codes.ResourceExhausted} {
			ctx := metadata.NewOutgoingContext(t.Context(), metadata.Pairs("authorization", fmt.Sprint("Bearer guess", i)))
			a := call(ctx, conn)
			if a.status.Code() != code || (a.field("retry-after") != "") != (i == 1) || (a.retryDelay() > 0) != (i == 1) {
				t.Errorf("guess %d: %v with retry-after %q and RetryInfo %v, want %v", i, a.status, a.field("retry-after"), a.retryDelay(), code)
			}
		}
	})
}

// Without Identify every call is refused, and the log says why.
func TestRequireAlone(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
		errs, logs := contract.Logged()
		auth := must(bearer.New("test", func(context.Context, string) (string, error) { return "ann", nil }, bearer.Options{Errors: errs}))
		conn := start(t, same, interceptors(gatehousegrpc.Require(auth))...)
		expect(t, call(t.Context(), conn), codes.Internal, "The service failed to answer this request.")
		if logs.Text() == "" {
			t.Error("nothing is logged")
		}
	})
}

func TestAuthenticatorMustNotBeNil(t *testing.T) {
	for name, construct := range map[string]func(){
		"Identify": func() { gatehousegrpc.Identify[string](nil) },
		"Require":  func() { gatehousegrpc.Require[string](nil) },
	} {
		func() {
			defer func() {
				if p := recover(); p != "gatehousegrpc: "+name+": the authenticator must not be nil" {
					t.Errorf("%s panics with %v", name, p)
				}
			}()
			construct()
		}()
	}
}

// Calls of open methods need no token, and no others are let through by a similar name.
func TestRequireLeavesMethodsOut(t *testing.T) {
	for name, test := range map[string]struct {
		open []string
		code codes.Code
	}{
		"a method":           {[]string{unaryMethod, streamMethod}, codes.OK},
		"a service":          {[]string{"/grpc.health.v1.Health/", "/test.Echo/"}, codes.OK},
		"another method":     {[]string{unaryMethod + "s", streamMethod + "s", "/test.Echo/U", "/test.Echo/S"}, codes.Unauthenticated},
		"another service":    {[]string{"/test.Echo2/", "/est.Echo/", "/test."}, codes.Unauthenticated},
		"no slash at an end": {[]string{"/test.Echo", "test.Echo/", "test.Echo"}, codes.Unauthenticated},
		"all":                {[]string{"/", "", "*"}, codes.Unauthenticated},
		"none":               {nil, codes.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn) answer) {
				auth := must(bearer.New("test", func(context.Context, string) (string, error) { return "ann", nil }, bearer.Options{}))
				conn := start(t, same, append(interceptors(gatehousegrpc.Identify(auth)), interceptors(gatehousegrpc.Require(auth, test.open...))...)...)
				if a := call(t.Context(), conn); a.status.Code() != test.code {
					t.Errorf("without a token: %v, want %v", a.status, test.code)
				}
			})
		})
	}
}
