package gatehousegrpc

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/animalstore/gatehouse/adapters/internal/rpclimit"
	"github.com/animalstore/gatehouse/ratelimit"
)

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
