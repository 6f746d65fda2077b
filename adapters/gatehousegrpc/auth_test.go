package gatehousegrpc_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

// Without Identify every call is refused, and the log says why.
func TestRequireAlone(t *testing.T) {
	both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn, string) answer) {
		errs, logs := contract.Logged()
		auth := testcheck.Must(bearer.New("test", func(context.Context, string) (string, error) { return "ann", nil }, bearer.Options{Errors: errs}))
		conn := start(t, same, interceptors(gatehousegrpc.Require(auth))...)
		expect(t, call(t.Context(), conn, "hello"), codes.Internal, "The service failed to answer this request.")
		if logs.String() == "" {
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
		"a method":           {[]string{contract.Unary, contract.BidiStream}, codes.OK},
		"a service":          {[]string{"/grpc.health.v1.Health/", "/test.Kinds/"}, codes.OK},
		"another method":     {[]string{contract.Unary + "s", contract.BidiStream + "s", "/test.Kinds/U", "/test.Kinds/S"}, codes.Unauthenticated},
		"another service":    {[]string{"/test.Kinds2/", "/est.Echo/", "/test."}, codes.Unauthenticated},
		"no slash at an end": {[]string{"/test.Kinds", "test.Kinds/", "test.Kinds"}, codes.Unauthenticated},
		"all":                {[]string{"/", "", "*"}, codes.Unauthenticated},
		"none":               {nil, codes.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, call func(context.Context, *grpc.ClientConn, string) answer) {
				auth := testcheck.Must(bearer.New("test", func(context.Context, string) (string, error) { return "ann", nil }, bearer.Options{}))
				conn := start(t, same, append(interceptors(gatehousegrpc.Identify(auth)), interceptors(gatehousegrpc.Require(auth, test.open...))...)...)
				if a := call(t.Context(), conn, "hello"); a.status.Code() != test.code {
					t.Errorf("without a token: %v, want %v", a.status, test.code)
				}
			})
		})
	}
}
