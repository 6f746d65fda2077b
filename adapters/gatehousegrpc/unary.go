package gatehousegrpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/animalstore/gatehouse/adapters/internal/rpclimit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Unary returns an interceptor that counts each unary call for the caller that identify
// returns, and refuses it as the page of this package says. It returns an error if an
// argument is nil or an option is not valid.
func Unary(l ratelimit.Limiter, identify Identify, opts Options) (grpc.UnaryServerInterceptor, error) {
	g, err := newGate(l, identify, opts)
	if err != nil {
		return nil, err
	}
	return g.unary, nil
}

func (g *gate) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	call := g.open(ctx, info.FullMethod)
	if call.Denial != nil {
		_ = grpc.SetTrailer(ctx, refusedMetadata(call))
		return nil, statusError(call.Denial)
	}
	returned := false
	defer func() {
		finish(ctx, call, err, returned)
		fields := toMetadata(call.Fields)
		if !returned || err != nil || grpc.SetHeader(ctx, fields) != nil {
			_ = grpc.SetTrailer(ctx, fields)
		}
	}()
	resp, err = handler(call.Context, req)
	returned = true
	return resp, err
}

// finish gives back what a call that was served is not to be charged.
func finish(ctx context.Context, call *rpclimit.Call, err error, returned bool) {
	if !returned {
		err = status.Error(codes.Internal, "the handler panicked")
	}
	call.Finish(ctx, rpclimit.Code(statusOf(err).Code()), err)
}

// statusOf returns the status that gRPC sends for an error of a handler: that of an error
// of a context is not UNKNOWN.
func statusOf(err error) *status.Status {
	if st, ok := status.FromError(err); ok {
		return st
	}
	return status.FromContextError(err)
}
