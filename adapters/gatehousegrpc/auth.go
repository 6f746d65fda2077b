package gatehousegrpc

import (
	"context"
	"net"
	"net/http"
	"net/netip"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/rpclimit"
	"github.com/animalstore/gatehouse/middleware/clientip"
)

// An Authenticator finds the principal of a call by its authorization metadata. A
// *bearer.Authenticator is one, with the verify function of package apikey or another.
type Authenticator interface {
	IdentifyCall(ctx context.Context, method string, authorization []string) context.Context
	RequireCall(ctx context.Context, method string) (http.Header, *apierror.Error)
}

// UnaryIdentify returns an interceptor that finds the principal of a call and refuses
// none. Further in bearer.FromContext and bearer.OutcomeFrom return what it found.
func UnaryIdentify(a Authenticator) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return handler(identified(ctx, a, info.FullMethod), req)
	}
}

// StreamIdentify is UnaryIdentify for streams.
func StreamIdentify(a Authenticator) grpc.StreamServerInterceptor {
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
// It also refuses health checks and reflection, which Kubernetes and grpcurl call without
// a token. To leave methods out, call it only for the others, and let Identify return a
// caller of ratelimit.KindExempt for those that are not to be counted either:
//
//	require := gatehousegrpc.UnaryRequire(auth)
//	func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
//		if strings.HasPrefix(info.FullMethod, "/grpc.health.v1.Health/") {
//			return handler(ctx, req)
//		}
//		return require(ctx, req, info, handler)
//	}
func UnaryRequire(a Authenticator) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if refused := rpclimit.Require(ctx, a, info.FullMethod); refused != nil {
			_ = grpc.SetTrailer(ctx, refusedMetadata(refused))
			return nil, statusError(refused.Denial)
		}
		return handler(ctx, req)
	}
}

// StreamRequire is UnaryRequire for streams.
func StreamRequire(a Authenticator) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if refused := rpclimit.Require(ss.Context(), a, info.FullMethod); refused != nil {
			ss.SetTrailer(refusedMetadata(refused))
			return statusError(refused.Denial)
		}
		return handler(srv, ss)
	}
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
	if p, ok := peer.FromContext(ctx); ok {
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
