package gatehousegrpc

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
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

// Stream returns an interceptor that counts each stream once, when it opens, for the
// caller that identify returns, and refuses it as the page of this package says. Refunds
// are decided when it ends. It returns an error if an argument is nil or an option is not
// valid.
func Stream(l ratelimit.Limiter, identify Identify, opts Options) (grpc.StreamServerInterceptor, error) {
	g, err := newGate(l, identify, opts)
	if err != nil {
		return nil, err
	}
	return g.stream, nil
}

func (g *gate) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	ctx := ss.Context()
	call := g.open(ctx, info.FullMethod)
	if call.Denial != nil {
		ss.SetTrailer(refusedMetadata(call))
		return statusError(call.Denial)
	}
	counted := &countedStream{ServerStream: ss, call: call, fields: toMetadata(call.Fields)}
	returned := false
	defer func() {
		finish(ctx, call, err, returned)
		counted.end(returned && err == nil)
	}()
	err = handler(srv, counted)
	returned = true
	return err
}

// A countedStream sends the fields with the header if the stream succeeds or sends a
// message, and otherwise in the trailer. It tells the call how its messages fare.
type countedStream struct {
	grpc.ServerStream
	call   *rpclimit.Call
	fields metadata.MD
	once   sync.Once
}

func (s *countedStream) Context() context.Context { return s.call.Context }

func (s *countedStream) begin() {
	s.once.Do(func() {
		if s.ServerStream.SetHeader(s.fields) != nil { // the handler has sent it
			s.ServerStream.SetTrailer(s.fields)
		}
	})
}

func (s *countedStream) end(succeeded bool) {
	if succeeded {
		s.begin()
	}
	s.once.Do(func() { s.ServerStream.SetTrailer(s.fields) })
}

func (s *countedStream) SendHeader(md metadata.MD) error {
	s.begin()
	return s.ServerStream.SendHeader(md)
}

func (s *countedStream) SendMsg(m any) error {
	s.begin()
	return s.call.Message(s.ServerStream.SendMsg(m))
}

func (s *countedStream) RecvMsg(m any) error { return s.call.Message(s.ServerStream.RecvMsg(m)) }
