package gatehouseconnect

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/animalstore/gatehouse/adapters/internal/rpclimit"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

// NewIdentify returns an interceptor that finds the principal of a call and refuses
// none. Further in [bearer.FromContext] and [bearer.OutcomeFrom] return what it found.
// Like NewRequire it panics if a is nil. Metrics: CallAuthentication of package telemetry.
func NewIdentify[P any](a *bearer.Authenticator[P]) connect.Interceptor {
	rpclimit.MustHave(a, "gatehouseconnect: NewIdentify")
	return interceptor(func(r *http.Request) (context.Context, *rpclimit.Call) {
		return a.IdentifyCall(r.Context(), r.Header["Authorization"], func() *http.Request { return r }), nil
	})
}

// NewRequire returns an interceptor that refuses a call without a principal. The code is
// unauthenticated if there is no valid token, and invalid_argument if there is more than one.
// It is unavailable with RetryInfo if the token could not be verified, and resource_exhausted
// with RetryInfo if the network guesses keys (apikey.Verifier). The header has
// WWW-Authenticate or Retry-After.
//
// Place it inside NewIdentify, or inside the HTTP middleware Identify, of the same
// Authenticator. Otherwise it answers every call with internal and logs why.
//
// Health checks and reflection, such as by packages grpchealth and grpcreflect,
// need no token and no limit: mount their handlers without these interceptors.
func NewRequire[P any](a *bearer.Authenticator[P]) connect.Interceptor {
	rpclimit.MustHave(a, "gatehouseconnect: NewRequire")
	return interceptor(func(r *http.Request) (context.Context, *rpclimit.Call) {
		return r.Context(), rpclimit.Require(r.Context(), a, func() *http.Request { return r })
	})
}

// An interceptor returns the context of a call to the server, or its refusal.
type interceptor func(r *http.Request) (context.Context, *rpclimit.Call)

// WrapUnary is part of [connect.Interceptor].
func (i interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if req.Spec().IsClient {
			return next(ctx, req)
		}
		ctx, refused := i(rpclimit.Request(ctx, req.Spec().Procedure, req.Header(), req.Peer().Addr))
		if refused != nil {
			setUnaryHeader(ctx, refused.Fields)
			return nil, connectError(refused.Denial)
		}
		return next(ctx, req)
	}
}

// WrapStreamingHandler is part of [connect.Interceptor].
func (i interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		ctx, refused := i(rpclimit.Request(ctx, conn.Spec().Procedure, conn.RequestHeader(), conn.Peer().Addr))
		if refused != nil {
			setHeader(conn.ResponseHeader(), refused.Fields)
			return connectError(refused.Denial)
		}
		return next(ctx, conn)
	}
}

// WrapStreamingClient is part of [connect.Interceptor].
func (interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}
