package gatehousegrpc

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/animalstore/gatehouse/adapters/internal/rpclimit"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/clientip"
)

// An Authenticator finds the principal of a call by its authorization metadata. A
// *bearer.Authenticator is one, with the verify function of package apikey or another.
type Authenticator interface {
	IdentifyCall(ctx context.Context, method string, authorization []string) context.Context
	RequireCall(ctx context.Context, method string) (http.Header, *apierror.Error)
}

// UnaryIdentify returns an interceptor that finds the principal of a call and refuses
// none. Further in bearer.FromContext and bearer.OutcomeFrom return what it found. Like the
// three functions below it panics if a is nil. Metrics: CallAuthentication of package
// telemetry.
func UnaryIdentify(a Authenticator) grpc.UnaryServerInterceptor {
	rpclimit.MustHave(a, "gatehousegrpc: UnaryIdentify")
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return handler(identified(ctx, a, info.FullMethod), req)
	}
}

// StreamIdentify is UnaryIdentify for streams.
func StreamIdentify(a Authenticator) grpc.StreamServerInterceptor {
	rpclimit.MustHave(a, "gatehousegrpc: StreamIdentify")
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return handler(srv, &identifiedStream{ss, identified(ss.Context(), a, info.FullMethod)})
	}
}

// UnaryRequire returns an interceptor that refuses a call without a principal:
// UNAUTHENTICATED if there is no token or it is not valid, INVALID_ARGUMENT if there is
// more than one, UNAVAILABLE with RetryInfo if the token could not be verified. The
// trailer has www-authenticate or retry-after.
//
// Place it inside UnaryIdentify of the same Authenticator. Otherwise it answers every
// call with INTERNAL and logs why.
//
// open names methods that need no token: "/pets.v1.Pets/Get", or a service with all of
// its methods, "/pets.v1.Pets/". Kubernetes checks health without a token, and grpcurl
// asks for reflection without one, which is a stream:
//
//	gatehousegrpc.UnaryRequire(auth, "/grpc.health.v1.Health/")
//	gatehousegrpc.StreamRequire(auth, "/grpc.health.v1.Health/", "/grpc.reflection.v1.ServerReflection/")
//
// For methods that are not to be counted either, identify returns a caller with a
// [ratelimit.UnlimitedPlan].
func UnaryRequire(a Authenticator, open ...string) grpc.UnaryServerInterceptor {
	rpclimit.MustHave(a, "gatehousegrpc: UnaryRequire")
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if isOpen(info.FullMethod, open) {
			return handler(ctx, req)
		}
		if refused := rpclimit.Require(ctx, a, info.FullMethod); refused != nil {
			_ = grpc.SetTrailer(ctx, refusedMetadata(refused))
			return nil, statusError(refused.Denial)
		}
		return handler(ctx, req)
	}
}

// StreamRequire is UnaryRequire for streams.
func StreamRequire(a Authenticator, open ...string) grpc.StreamServerInterceptor {
	rpclimit.MustHave(a, "gatehousegrpc: StreamRequire")
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if isOpen(info.FullMethod, open) {
			return handler(srv, ss)
		}
		if refused := rpclimit.Require(ss.Context(), a, info.FullMethod); refused != nil {
			ss.SetTrailer(refusedMetadata(refused))
			return statusError(refused.Denial)
		}
		return handler(srv, ss)
	}
}

// isOpen reports whether open names the method, or its service.
func isOpen(method string, open []string) bool {
	service := method[:strings.LastIndexByte(method, '/')+1]
	return slices.Contains(open, method) || slices.Contains(open, service)
}

func identified(ctx context.Context, a Authenticator, method string) context.Context {
	return a.IdentifyCall(ctx, method, metadata.ValueFromIncomingContext(ctx, "authorization"))
}

type identifiedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *identifiedStream) Context() context.Context { return s.ctx }

// PeerAddr returns the address of the peer that a call comes from, for
// clientip.NetworkSubject, and the zero address if it has none. Behind a proxy it is
// the address of the proxy: see [ClientAddr].
func PeerAddr(ctx context.Context) netip.Addr {
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		if tcp, ok := p.Addr.(*net.TCPAddr); ok {
			return tcp.AddrPort().Addr().Unmap()
		}
		if at, err := netip.ParseAddrPort(p.Addr.String()); err == nil { // the address in an http.Request
			return at.Addr().Unmap()
		}
	}
	return netip.Addr{}
}

// ClientAddr returns the address of the client that sent a call through the proxies that
// source trusts, which have put it into the metadata.
func ClientAddr(ctx context.Context, source *clientip.Source) netip.Addr {
	return source.AddrFrom(PeerAddr(ctx), func(name string) []string {
		return metadata.ValueFromIncomingContext(ctx, name)
	})
}
