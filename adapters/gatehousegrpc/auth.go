package gatehousegrpc

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/animalstore/gatehouse/adapters/internal/rpclimit"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

// Identify returns two interceptors that find the principal of a call by the bearer token
// in its authorization metadata, and refuse none. Further in [bearer.FromContext] and
// [bearer.OutcomeFrom] return what they found. Like Require it panics if a is nil.
// Metrics: CallAuthentication of package telemetry.
func Identify[P any](a *bearer.Authenticator[P]) (grpc.UnaryServerInterceptor, grpc.StreamServerInterceptor) {
	rpclimit.MustHave(a, "gatehousegrpc: Identify")
	return intercept(func(ctx context.Context, method string) (context.Context, *rpclimit.Call) {
		// All metadata, which has to be copied, is rarely needed.
		lines := metadata.ValueFromIncomingContext(ctx, "authorization")
		return a.IdentifyCall(ctx, lines, func() *http.Request { return request(ctx, method) }), nil
	})
}

// intercept returns the interceptors that serve a call with the context that before returns,
// or refuse it.
func intercept(before func(ctx context.Context, method string) (context.Context, *rpclimit.Call)) (grpc.UnaryServerInterceptor, grpc.StreamServerInterceptor) {
	unary := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ctx, refused := before(ctx, info.FullMethod)
		if refused != nil {
			_ = grpc.SetTrailer(ctx, refusedMetadata(refused))
			return nil, statusError(refused.Denial)
		}
		return handler(ctx, req)
	}
	stream := func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx, refused := before(ss.Context(), info.FullMethod)
		if refused != nil {
			ss.SetTrailer(refusedMetadata(refused))
			return statusError(refused.Denial)
		}
		return handler(srv, &streamWithContext{ss, ctx})
	}
	return unary, stream
}

type streamWithContext struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *streamWithContext) Context() context.Context { return s.ctx }

// Require returns two interceptors that refuse a call without a principal:
// UNAUTHENTICATED if there is no token or it is not valid, INVALID_ARGUMENT if there is
// more than one, UNAVAILABLE with RetryInfo if the token could not be verified, and
// RESOURCE_EXHAUSTED with RetryInfo if the network guesses keys (apikey.Verifier). The
// trailer has www-authenticate or retry-after.
//
// Place them inside the interceptors of Identify with the same Authenticator. Otherwise they answer
// every call with INTERNAL and log why.
//
// open names methods that need no token: "/pets.v1.Pets/Get", or a service with all of
// its methods, "/pets.v1.Pets/". Kubernetes checks health without a token, and grpcurl
// asks for reflection without one, which is a stream:
//
//	gatehousegrpc.Require(auth, "/grpc.health.v1.Health/", "/grpc.reflection.v1.ServerReflection/")
//
// For methods that are not to be counted either, identify returns a caller with a
// [ratelimit.UnlimitedPlan].
func Require[P any](a *bearer.Authenticator[P], open ...string) (grpc.UnaryServerInterceptor, grpc.StreamServerInterceptor) {
	rpclimit.MustHave(a, "gatehousegrpc: Require")
	return intercept(func(ctx context.Context, method string) (context.Context, *rpclimit.Call) {
		service := method[:strings.LastIndexByte(method, '/')+1]
		if slices.Contains(open, method) || slices.Contains(open, service) {
			return ctx, nil
		}
		return ctx, rpclimit.Require(ctx, a, func() *http.Request { return request(ctx, method) })
	})
}
