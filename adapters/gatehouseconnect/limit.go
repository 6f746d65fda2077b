// Package gatehouseconnect limits the calls of a Connect server, and authenticates them
// by bearer tokens, in the Connect, gRPC and gRPC-Web protocols:
//
//	limit, err := gatehouseconnect.New(limiter, identify, gatehouseconnect.Options{})
//	path, handler := petsv1connect.NewPetsHandler(pets{}, connect.WithInterceptors(
//		gatehouseconnect.NewIdentify(auth), limit, gatehouseconnect.NewRequire(auth)))
//
// A refused call ends with an error:
//
//	limited or banned          resource_exhausted (429)  RetryInfo, ErrorInfo; if limited, QuotaFailure
//	suspended plan             permission_denied (403)   ErrorInfo
//	the engine cannot decide   unavailable (503)         RetryInfo, ErrorInfo; unless Options.FailOpen is set
//	cost above a whole quota   invalid_argument (400)    ErrorInfo
//	no subject, no plan        internal (500)            ErrorInfo; the log has the reason
//
// In parentheses is the HTTP status that unary calls of the Connect protocol get. All
// calls under a plan with quotas, served or refused, have X-RateLimit-Limit, -Remaining
// and -Reset in the header of the response, and those with RetryInfo also Retry-After. A
// client finds the fields of a refused call in the Meta of its error.
//
// Options.Errors translates the messages of the limit, and bearer.Options.Errors the messages
// of NewRequire. With Options.ChargeIf only some calls are charged, by their code: failed
// sign-ins alone, for instance.
//
// The middleware of package limit around a Connect handler is not the same. Clients see its 429
// as unavailable, without RetryInfo. With limit.NotServerError it also gives back unary calls
// of the Connect protocol that a client can make fail: with 500 for unknown, 501 for an unknown
// compression, or 504 at its deadline. Authentication can be done in either place: NewRequire
// also works inside the middleware Identify of package bearer.
//
// A stream is charged once, when it opens, however many messages it carries;
// Options.Settle is for services that settle its cost when it ends. That counts in the
// windows in which the stream opened, if they are still open. To limit the messages of
// long streams, call Take of the engine, or a ratelimit.Waiter, for each. Package
// ratelimit/redislimit/slots limits how many streams a client has open at once. The server
// has received and decoded the message of a unary call when it is counted. A message that
// cannot be decoded is answered before, and not counted; nor are requests that reach no
// handler, such as those of unknown methods. To count these too, put limit.ByIP around
// the mux.
//
// A client whose http.Client has a transport of package ratelimit/transport waits as the server
// asks, for unary calls of the Connect protocol. gRPC clients with a retry policy do not retry
// a refused call, as they do one of gatehousegrpc. The reason is that connect-go sends the
// refusal in two blocks of headers (gRFC A6). They find the time to wait in RetryInfo.
//
// Browsers show pages of other origins only the fields that the middleware for CORS
// exposes: add Retry-After and the X-RateLimit fields to its list.
package gatehouseconnect

import (
	"context"
	"errors"
	"net/http"
	"os"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/animalstore/gatehouse/adapters/internal/rpclimit"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// New returns an interceptor that counts each call for the caller that identify returns,
// and refuses it as the page of this package says. A stream is counted once, when it
// opens, and Options.ChargeIf is asked when it ends. Calls of clients are left alone. New
// returns an error if an argument is nil or an option is not valid.
//
// identify and the functions in Options get the call as a request. The full name of the method,
// such as "/pets.v1.Pets/Get", is its URL.Path, and its header and its RemoteAddr belong to the
// call. So functions written for package limit and the sources of package clientip work as they
// are. An error of identify that wraps [ratelimit.ErrUnavailable] is treated as one of an
// engine that cannot decide. One that wraps a [connect.Error] is answered with that, and not
// logged. An [apierror.Error] is answered with the code that corresponds to its HTTP status,
// and its text. Any other error is logged and answered with internal. identify must be safe for
// concurrent use.
func New(l ratelimit.Limiter, identify func(r *http.Request) (ratelimit.Caller, error), opts Options) (connect.Interceptor, error) {
	g, err := rpclimit.New("gatehouseconnect", l, identify, rpclimit.Options(opts), isConnectError, errPanicked)
	if err != nil {
		return nil, err
	}
	return &limiter{g}, nil
}

type limiter struct{ gate *rpclimit.Gate }

// WrapUnary is part of [connect.Interceptor].
func (l *limiter) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (resp connect.AnyResponse, err error) {
		if req.Spec().IsClient {
			return next(ctx, req)
		}
		call := l.gate.Serve(rpclimit.Request(ctx, req.Spec().Procedure, req.Header(), req.Peer().Addr), func(call *rpclimit.Call) (rpclimit.Code, error) {
			setUnaryHeader(ctx, call.Fields)
			resp, err = next(call.Request.Context(), req)
			return codeOf(err), err
		})
		if call.Denial != nil {
			setUnaryHeader(ctx, call.Fields)
			return nil, connectError(call.Denial)
		}
		return resp, err
	}
}

// WrapStreamingHandler is part of [connect.Interceptor].
func (l *limiter) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) (err error) {
		call := l.gate.Serve(rpclimit.Request(ctx, conn.Spec().Procedure, conn.RequestHeader(), conn.Peer().Addr), func(call *rpclimit.Call) (rpclimit.Code, error) {
			setHeader(conn.ResponseHeader(), call.Fields)
			call.OneMessage = conn.Spec().StreamType == connect.StreamTypeServer
			err = next(call.Request.Context(), &countedStream{conn, call})
			return codeOf(err), err
		})
		if call.Denial != nil {
			setHeader(conn.ResponseHeader(), call.Fields)
			return connectError(call.Denial)
		}
		return err
	}
}

// A countedStream tells the call how its messages fare.
type countedStream struct {
	connect.StreamingHandlerConn
	call *rpclimit.Call
}

// Receive is part of [connect.StreamingHandlerConn].
func (s *countedStream) Receive(m any) error {
	return s.call.Receive(func() error { return s.StreamingHandlerConn.Receive(m) })
}

// Send is part of [connect.StreamingHandlerConn].
func (s *countedStream) Send(m any) error { return s.call.Sent(s.StreamingHandlerConn.Send(m)) }

// WrapStreamingClient is part of [connect.Interceptor].
func (l *limiter) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

var errPanicked = connect.NewError(connect.CodeInternal, errors.New("the handler panicked"))

// NotServerError is an Options.ChargeIf that gives back the calls that ended in a panic or
// with internal, unavailable or data_loss. An error without a code is unknown, which a client
// can cause and which stays charged. Give an error that is the fault of the service one of
// these, and any other error another code.
func NotServerError(_ *http.Request, err error) bool { return !codeOf(err).ServerFault() }

// codeOf returns the code that Connect sends for an error of a handler: the code of a deadline is
// not unknown.
func codeOf(err error) rpclimit.Code {
	if !isConnectError(err) && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)) {
		return rpclimit.DeadlineExceeded
	}
	return rpclimit.Code(connect.CodeOf(err))
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

// Options are optional settings of [New]. The zero value works. Functions must be safe for
// concurrent use, and get the call as a request; see [New].
type Options struct {
	// Headers are in the header of the response, and Shadow sets no fields either. FailOpen
	// admits no call whose context has ended, by a deadline too. The Settlement of a call is for
	// the messages of a stream, for instance. limit.Options.ChargeIf must be nil, since a call has
	// no HTTP status: use ChargeIf below.
	limit.Options

	// ChargeIf reports whether a call stays charged, by the error that its handler
	// returned: [NotServerError], or failed sign-ins alone, for instance. It is asked when
	// the call or the stream has ended. The rest is as in [limit.Options].
	//
	// r has the context of the handler. err is nil if the call succeeded, although the
	// code of [connect.CodeOf] is unknown then, and has the code internal if the handler
	// panicked. It is not nil for 304 either: [connect.IsNotModifiedError] tells.
	//
	// What the client can cause stays charged, whatever ChargeIf returns. That is a call whose
	// context has ended, by its client or by its deadline, and a call that ends with
	// deadline_exceeded. It is also a stream whose handler asked for a message and got none,
	// still waits for one, or could not receive or send one. A call that the server itself
	// ends, by Close, counts as cancelled.
	ChargeIf func(r *http.Request, err error) bool
}

// isConnectError reports whether err has a code. Code 0 does not count: clients of gRPC
// would see a refused stream end as if it had been served.
func isConnectError(err error) bool {
	e, ok := errors.AsType[*connect.Error](err)
	return ok && e != nil && e.Code() != 0
}

// connectError returns the error that sends a denial.
func connectError(d *rpclimit.Denial) error {
	if d.Native != nil {
		return d.Native
	}
	err := connect.NewError(connect.Code(d.Code), errors.New(d.Message))
	addDetail(err, &errdetails.ErrorInfo{Reason: d.Reason, Domain: rpclimit.Domain})
	if d.RetryAfter > 0 {
		addDetail(err, &errdetails.RetryInfo{RetryDelay: durationpb.New(d.RetryAfter)})
	}
	if len(d.Violations) > 0 {
		failure := new(errdetails.QuotaFailure)
		for _, v := range d.Violations {
			failure.Violations = append(failure.Violations,
				&errdetails.QuotaFailure_Violation{QuotaId: v.ID, QuotaValue: v.Limit, Description: v.Description})
		}
		addDetail(err, failure)
	}
	return err
}

func addDetail(err *connect.Error, message proto.Message) {
	if detail, failed := connect.NewErrorDetail(message); failed == nil { // these messages can always be encoded
		err.AddDetail(detail)
	}
}
