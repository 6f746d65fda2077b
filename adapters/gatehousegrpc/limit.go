// Package gatehousegrpc limits the calls of a gRPC server, and authenticates them by
// bearer tokens:
//
//	identifyUnary, identifyStream := gatehousegrpc.Identify(auth)
//	limitUnary, limitStream, err := gatehousegrpc.New(limiter, identify, gatehousegrpc.Options{})
//	requireUnary, requireStream := gatehousegrpc.Require(auth)
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(identifyUnary, limitUnary, requireUnary),
//		grpc.ChainStreamInterceptor(identifyStream, limitStream, requireStream))
//
// The function identify is one for limit.New, such as limit.Addresses{}.Identify(planOf). A
// refused call ends with a status:
//
//	limited or banned          RESOURCE_EXHAUSTED  RetryInfo, ErrorInfo; if limited, QuotaFailure
//	suspended plan             PERMISSION_DENIED   ErrorInfo
//	the engine cannot decide   UNAVAILABLE         RetryInfo, ErrorInfo; unless Options.FailOpen is set
//	cost above a whole quota   INVALID_ARGUMENT    ErrorInfo
//	no subject, no plan        INTERNAL            ErrorInfo; the log has the reason
//
// Options.Errors translates the messages of the limit, and bearer.Options.Errors the messages
// of Require. With Options.ChargeIf only some calls are charged, by their status: failed
// sign-ins alone, for instance.
//
// Metadata has the fields that HTTP has, x-ratelimit-limit, -remaining and -reset, and
// retry-after. They are in the header of calls that succeed, and in the trailer of calls
// that fail. A failed call therefore stays a single block of headers, which clients
// with a retry policy need in order to retry it (gRFC A6). Such a client also gets
// grpc-retry-pushback-ms: it waits exactly as long as RetryInfo says, up to a minute.
// If the wait is longer, it does not retry. If the deadline of the call comes first, the
// call ends with DEADLINE_EXCEEDED. Concurrent calls of a client compete, and can run out
// of attempts: in the example of a client they wait for their turn before they are sent.
// Behind grpc-gateway an HTTP client gets Retry-After only if an error handler
// (runtime.WithErrorHandler) sets it from RetryInfo.
//
// A stream is charged once, when it opens, however many messages it carries;
// Options.Settle is for services that settle its cost when it ends. That counts in the
// windows in which the stream opened, if they are still open. To limit the messages of
// long streams, call Take of the engine, or a ratelimit.Waiter, for each. Package
// ratelimit/redislimit/slots limits how many streams a client has open at once. The server
// has received and decoded the message of a unary call when it is counted. Messages that
// cannot be decoded, and calls of unknown methods, reach no interceptor and are not
// counted.
package gatehousegrpc

import (
	"context"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/animalstore/gatehouse/adapters/internal/rpclimit"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// New returns two interceptors that count each call for the caller that identify returns,
// and refuse it as the page of this package says. A stream is counted once, when it opens,
// and Options.ChargeIf is asked when it ends. New returns an error if an argument is nil or an
// option is not valid.
//
// identify and the functions in Options get the call as a request. The full name of the method,
// such as "/pets.v1.Pets/Get", is its URL.Path, the metadata is its header, and its RemoteAddr
// is the address of the peer. So functions written for package limit and the sources of package
// clientip work as they are. An error of identify that wraps [ratelimit.ErrUnavailable] is
// treated as one of an engine that cannot decide. One that has a gRPC status is the answer to
// the call, and not logged. An [apierror.Error] is answered with the status that corresponds to
// its HTTP status, and its text. Any other error is logged and answered with INTERNAL. identify
// must be safe for concurrent use.
func New(l ratelimit.Limiter, identify func(r *http.Request) (ratelimit.Caller, error), opts Options) (grpc.UnaryServerInterceptor, grpc.StreamServerInterceptor, error) {
	g, err := rpclimit.New("gatehousegrpc", l, identify, rpclimit.Options(opts), hasStatus, errPanicked)
	if err != nil {
		return nil, nil, err
	}
	return (&gate{g}).unary, (&gate{g}).stream, nil
}

type gate struct{ *rpclimit.Gate }

// request returns a call as a request, with its metadata as the header.
func request(ctx context.Context, method string) *http.Request {
	md, _ := metadata.FromIncomingContext(ctx)
	header := make(http.Header, len(md))
	for name, values := range md {
		header[http.CanonicalHeaderKey(name)] = values
	}
	remoteAddr := ""
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		remoteAddr = p.Addr.String()
	}
	return rpclimit.Request(ctx, method, header, remoteAddr)
}

func (g *gate) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	call := g.Serve(request(ctx, info.FullMethod), func(call *rpclimit.Call) (rpclimit.Code, error) {
		err = errPanicked
		defer func() {
			fields := toMetadata(call.Claim())
			if err != nil || grpc.SetHeader(ctx, fields) != nil {
				_ = grpc.SetTrailer(ctx, fields)
			}
		}()
		resp, err = handler(call.Request.Context(), req)
		return rpclimit.Code(statusOf(err).Code()), err
	})
	if call.Denial != nil {
		_ = grpc.SetTrailer(ctx, refusedMetadata(call))
		return nil, statusError(call.Denial)
	}
	return resp, err
}

var errPanicked = status.Error(codes.Internal, "the handler panicked")

// NotServerError is an Options.ChargeIf that gives back the calls that ended in a panic or
// with INTERNAL, UNAVAILABLE or DATA_LOSS. An error without a status is UNKNOWN, which a
// client can cause and which stays charged. Give an error that is the fault of the service one
// of these, and any other error another status.
func NotServerError(_ *http.Request, err error) bool {
	return !rpclimit.Code(statusOf(err).Code()).ServerFault()
}

// statusOf returns the status that gRPC sends for an error of a handler: the status of an error
// of a context is not UNKNOWN.
func statusOf(err error) *status.Status {
	if st, ok := status.FromError(err); ok {
		return st
	}
	return status.FromContextError(err)
}

func (g *gate) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	call := g.Serve(request(ss.Context(), info.FullMethod), func(call *rpclimit.Call) (rpclimit.Code, error) {
		counted := &countedStream{ServerStream: ss, call: call}
		err = errPanicked
		defer func() { counted.end(err == nil) }()
		err = handler(srv, counted)
		return rpclimit.Code(statusOf(err).Code()), err
	})
	if call.Denial != nil {
		ss.SetTrailer(refusedMetadata(call))
		return statusError(call.Denial)
	}
	return err
}

// A countedStream sends the fields with the header if the stream succeeds or sends a
// message, and otherwise in the trailer. It tells the call how its messages fare.
type countedStream struct {
	grpc.ServerStream
	call *rpclimit.Call
	once sync.Once
}

func (s *countedStream) Context() context.Context { return s.call.Request.Context() }

func (s *countedStream) begin() {
	s.once.Do(func() {
		fields := toMetadata(s.call.Claim())
		if s.ServerStream.SetHeader(fields) != nil { // the handler has sent it
			s.ServerStream.SetTrailer(fields)
		}
	})
}

func (s *countedStream) end(succeeded bool) {
	if succeeded {
		s.begin()
	}
	s.once.Do(func() { s.ServerStream.SetTrailer(toMetadata(s.call.Claim())) })
}

func (s *countedStream) SendHeader(md metadata.MD) error {
	s.begin()
	return s.ServerStream.SendHeader(md)
}

func (s *countedStream) SendMsg(m any) error {
	s.begin()
	return s.call.Sent(s.ServerStream.SendMsg(m))
}

func (s *countedStream) RecvMsg(m any) error {
	return s.call.Receive(func() error { return s.ServerStream.RecvMsg(m) })
}

// Options are optional settings of [New]. The zero value works. Functions must be safe for
// concurrent use, and get the call as a request; see [New].
type Options struct {
	// Headers are in the metadata, and Shadow sets no metadata either. FailOpen
	// admits no call whose context has ended, by a deadline too. The Settlement of a call is for
	// the messages of a stream, for instance. limit.Options.ChargeIf must be nil, since a call has
	// no HTTP status: use ChargeIf below.
	limit.Options

	// ChargeIf reports whether a call stays charged, by the error that its handler
	// returned: [NotServerError], or failed sign-ins alone, for instance. It is asked when
	// the call or the stream has ended. The rest is as in [limit.Options].
	//
	// r has the context of the handler. err is nil if the call succeeded, and has the
	// status INTERNAL if the handler panicked.
	//
	// What the client can cause stays charged, whatever ChargeIf returns. That is a call whose
	// context has ended, by its client or by its deadline, and a call that ends with
	// DEADLINE_EXCEEDED. It is also a stream whose handler asked for a message and got none,
	// still waits for one, or could not receive or send one. A call that the server itself
	// ends, by Stop or MaxConnectionAge, counts as cancelled.
	ChargeIf func(r *http.Request, err error) bool
}
