package gatehousegrpc

import (
	"context"
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
	identified := func(ctx context.Context, method string) context.Context {
		return a.IdentifyCall(ctx, method, metadata.ValueFromIncomingContext(ctx, "authorization"))
	}
	unary := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return handler(identified(ctx, info.FullMethod), req)
	}
	stream := func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return handler(srv, &identifiedStream{ss, identified(ss.Context(), info.FullMethod)})
	}
	return unary, stream
}

type identifiedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *identifiedStream) Context() context.Context { return s.ctx }

// Require returns two interceptors that refuse a call without a principal:
// UNAUTHENTICATED if there is no token or it is not valid, INVALID_ARGUMENT if there is
// more than one, UNAVAILABLE with RetryInfo if the token could not be verified. The
// trailer has www-authenticate or retry-after.
//
// Place them inside those of Identify with the same Authenticator. Otherwise they answer
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
	refused := func(ctx context.Context, method string) *rpclimit.Call {
		service := method[:strings.LastIndexByte(method, '/')+1]
		if slices.Contains(open, method) || slices.Contains(open, service) {
			return nil
		}
		return rpclimit.Require(ctx, a, method)
	}
	unary := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if call := refused(ctx, info.FullMethod); call != nil {
			_ = grpc.SetTrailer(ctx, refusedMetadata(call))
			return nil, statusError(call.Denial)
		}
		return handler(ctx, req)
	}
	stream := func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if call := refused(ss.Context(), info.FullMethod); call != nil {
			ss.SetTrailer(refusedMetadata(call))
			return statusError(call.Denial)
		}
		return handler(srv, ss)
	}
	return unary, stream
}
