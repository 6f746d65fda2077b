package gatehouseconnect

import (
	"context"

	"connectrpc.com/connect"

	"github.com/animalstore/gatehouse/adapters/internal/rpclimit"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

// NewIdentify returns an interceptor that finds the principal of a call and refuses
// none. Further in [bearer.FromContext] and [bearer.OutcomeFrom] return what it found.
// Like NewRequire it panics if a is nil. Metrics: CallAuthentication of package telemetry.
func NewIdentify[P any](a *bearer.Authenticator[P]) connect.Interceptor {
	rpclimit.MustHave(a, "gatehouseconnect: NewIdentify")
	return identifier{a}
}

// NewRequire returns an interceptor that refuses a call without a principal:
// unauthenticated if there is no token or it is not valid, invalid_argument if there is
// more than one, unavailable with RetryInfo if the token could not be verified. The
// header has WWW-Authenticate or Retry-After.
//
// Place it inside NewIdentify, or inside the HTTP middleware Identify, of the same
// Authenticator. Otherwise it answers every call with internal and logs why.
//
// Health checks and reflection, such as those of packages grpchealth and grpcreflect,
// need no token and no limit: mount their handlers without these interceptors.
func NewRequire[P any](a *bearer.Authenticator[P]) connect.Interceptor {
	rpclimit.MustHave(a, "gatehouseconnect: NewRequire")
	return requirer{a}
}

// An authenticator is a *bearer.Authenticator.
type authenticator interface {
	rpclimit.Requirer
	IdentifyCall(ctx context.Context, method string, authorization []string) context.Context
}

type identifier struct{ authenticator }

func (i identifier) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if !req.Spec().IsClient {
			ctx = i.IdentifyCall(ctx, req.Spec().Procedure, req.Header()["Authorization"])
		}
		return next(ctx, req)
	}
}

func (i identifier) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(i.IdentifyCall(ctx, conn.Spec().Procedure, conn.RequestHeader()["Authorization"]), conn)
	}
}

func (identifier) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

type requirer struct{ rpclimit.Requirer }

func (r requirer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if req.Spec().IsClient {
			return next(ctx, req)
		}
		if refused := rpclimit.Require(ctx, r, req.Spec().Procedure); refused != nil {
			setUnaryHeader(ctx, refused.Fields)
			return nil, connectError(refused.Denial)
		}
		return next(ctx, req)
	}
}

func (r requirer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if refused := rpclimit.Require(ctx, r, conn.Spec().Procedure); refused != nil {
			setHeader(conn.ResponseHeader(), refused.Fields)
			return connectError(refused.Denial)
		}
		return next(ctx, conn)
	}
}

func (requirer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}
