package gatehouseconnect

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"

	"connectrpc.com/connect"

	"github.com/animalstore/gatehouse/adapters/internal/rpclimit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// New returns an interceptor that counts each call for the caller that identify returns,
// and refuses it as the page of this package says. A stream is counted once, when it
// opens, and refunds are decided when it ends. Calls of clients are left alone. New
// returns an error if an argument is nil or an option is not valid.
func New(l ratelimit.Limiter, identify Identify, opts Options) (connect.Interceptor, error) {
	g, err := rpclimit.New("gatehouseconnect", l, identify != nil, opts.forGate(), isConnectError)
	if err != nil {
		return nil, err
	}
	return &limiter{g, identify}, nil
}

type limiter struct {
	gate     *rpclimit.Gate
	identify Identify
}

func (l *limiter) open(ctx context.Context, call Call) *rpclimit.Call {
	c, err := l.identify(ctx, call)
	if l.gate.Deny != nil {
		ctx = context.WithValue(ctx, callKey{}, call)
	}
	return l.gate.Open(ctx, call.Spec.Procedure, c, err)
}

// WrapUnary is part of [connect.Interceptor].
func (l *limiter) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (resp connect.AnyResponse, err error) {
		if req.Spec().IsClient {
			return next(ctx, req)
		}
		call := l.open(ctx, Call{req.Spec(), req.Peer(), req.Header()})
		setUnaryHeader(ctx, call.Fields)
		if call.Denial != nil {
			return nil, connectError(call.Denial)
		}
		returned := false
		defer func() { finish(ctx, call, err, returned) }()
		resp, err = next(call.Context, req)
		returned = true
		return resp, err
	}
}

// WrapStreamingHandler is part of [connect.Interceptor].
func (l *limiter) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) (err error) {
		call := l.open(ctx, Call{conn.Spec(), conn.Peer(), conn.RequestHeader()})
		setHeader(conn.ResponseHeader(), call.Fields)
		if call.Denial != nil {
			return connectError(call.Denial)
		}
		returned := false
		defer func() { finish(ctx, call, err, returned) }()
		err = next(call.Context, &countedStream{StreamingHandlerConn: conn, call: call})
		returned = true
		return err
	}
}

// A countedStream tells the call how its messages fare.
type countedStream struct {
	connect.StreamingHandlerConn
	call     *rpclimit.Call
	received bool // the first message
}

// Receive is part of [connect.StreamingHandlerConn]. If a method takes one message,
// connect-go receives that message and the end before it calls the handler. If the client
// sends none, or a second one, connect-go ends the stream with unimplemented.
func (s *countedStream) Receive(m any) error {
	err := s.StreamingHandlerConn.Receive(m)
	if s.Spec().StreamType == connect.StreamTypeServer && errors.Is(err, io.EOF) != s.received {
		_ = s.call.Message(errCardinality)
	}
	s.received = true
	return s.call.Message(err)
}

var errCardinality = errors.New("not one message")

// Send is part of [connect.StreamingHandlerConn].
func (s *countedStream) Send(m any) error { return s.call.Message(s.StreamingHandlerConn.Send(m)) }

// WrapStreamingClient is part of [connect.Interceptor].
func (l *limiter) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// finish gives back what a call that was served is not to be charged.
func finish(ctx context.Context, call *rpclimit.Call, err error, returned bool) {
	if !returned {
		err = connect.NewError(connect.CodeInternal, errors.New("the handler panicked"))
	}
	code := rpclimit.OK
	if err != nil && !connect.IsNotModifiedError(err) { // a 304, which is no fault
		code = rpclimit.Code(codeOf(err))
	}
	call.Finish(ctx, code, err)
}

// codeOf returns the code that Connect sends for an error of a handler: that of an error of
// a context is not unknown.
func codeOf(err error) connect.Code {
	switch {
	case isConnectError(err):
	case errors.Is(err, context.Canceled):
		return connect.CodeCanceled
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return connect.CodeDeadlineExceeded
	}
	return connect.CodeOf(err)
}

// setUnaryHeader sets fields in the response to a unary call, also if it is an error.
func setUnaryHeader(ctx context.Context, fields http.Header) {
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
		setHeader(info.ResponseHeader(), fields)
	}
}

func setHeader(h, fields http.Header) {
	for name, values := range fields {
		h[name] = values
	}
}
