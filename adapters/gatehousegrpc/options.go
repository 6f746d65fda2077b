package gatehousegrpc

import (
	"context"

	"github.com/animalstore/gatehouse/adapters/internal/rpclimit"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Options are optional settings of [Unary] and [Stream]. The zero value works.
type Options struct {
	// Cost returns how many units a call costs, at least 1. method is the full name, such
	// as "/pets.v1.Pets/Get". Nil means 1.
	Cost func(ctx context.Context, method string) int64

	// FailOpen admits what the engine cannot decide.
	FailOpen bool

	// Headers are the fields in the metadata. 0 means [limit.XRateLimit]. Whatever
	// Headers is, a call that is limited or banned has retry-after.
	Headers limit.HeaderSet

	// Refund gives back the units of a call that ended in a panic or with a status
	// that is the fault of the server: UNKNOWN, DEADLINE_EXCEEDED, UNIMPLEMENTED,
	// INTERNAL, UNAVAILABLE or DATA_LOSS. The limiter must be a [engine.Adjuster].
	//
	// What the client can cause is not refunded: a call whose context has ended, since its
	// client has cancelled it or has set the deadline, and a stream on which receiving or
	// sending a message has failed, whatever its handler makes of that. DEADLINE_EXCEEDED
	// is refunded only if the call has no deadline. A deadline that the server sets itself
	// belongs further in.
	Refund bool

	// ChargeIf reports whether a call stays charged, by the error that its handler
	// returned: failed sign-ins alone, for instance. The limiter must be a
	// [engine.Adjuster]. Each call is charged before it is served, so that concurrent
	// calls cannot exceed the limit, and its metadata counts it. If ChargeIf returns false
	// when the call or the stream has ended, the charge is given back.
	//
	// ctx is that of the handler. err is nil if the call succeeded, and has the status
	// INTERNAL if the handler panicked.
	//
	// ChargeIf is not asked about calls that Refund gives back, nor about those that stay
	// charged because their context has ended, their deadline was exceeded or a message
	// could not be received or sent.
	ChargeIf func(ctx context.Context, method string, err error) bool

	// Context makes the decision reachable from the context of the call, for usage, logs
	// and metrics, and for settling a cost that is known only afterwards, such as that of
	// the messages of a stream; see [limit.FromContext].
	Context bool

	// Shadow refuses nothing: calls are decided, charged and observed, and all are
	// served, without fields in their metadata. No call is a strike, and no ban starts.
	Shadow bool

	// Observe is called with each decision before the call is served or refused, but
	// see [limit.Options]. It must be safe for concurrent use.
	// Metrics: CallDecision of package telemetry.
	Observe func(ctx context.Context, method string, c ratelimit.Caller, d ratelimit.Decision, err error)

	// Deny returns the error that answers a limited, banned or suspended call: the
	// service's own code, text and details. If it returns nil, the call gets the default
	// error; no result admits the call. An error with a gRPC status is sent as it is. An
	// [apierror.Error] replaces the code, the reason and the text of the default error,
	// and keeps RetryInfo and QuotaFailure. Any other error is logged, and the call ends
	// with INTERNAL. The metadata is the same as without Deny. c is the one that Observe
	// gets. Calls that could not be decided still get the default error. Deny must be safe
	// for concurrent use.
	Deny func(ctx context.Context, method string, c ratelimit.Caller, d ratelimit.Decision) error

	// Errors logs why a call could not be decided. Nil works.
	Errors *apierror.Responder
}

// Identify returns the caller that a call is counted for. method is its full name, such
// as "/pets.v1.Pets/Get". If the error has a gRPC status, this is the answer to the
// call; an [apierror.Error] is answered with the status that corresponds to its HTTP
// status, and its text; any other error is logged and answered with INTERNAL. It must be
// safe for concurrent use.
type Identify func(ctx context.Context, method string) (ratelimit.Caller, error)

// newGate checks what Unary and Stream get.
func newGate(l ratelimit.Limiter, identify Identify, opts Options) (*gate, error) {
	g, err := rpclimit.New("gatehousegrpc", l, identify != nil, rpclimit.Options(opts), hasStatus)
	if err != nil {
		return nil, err
	}
	return &gate{g, identify}, nil
}

type gate struct {
	*rpclimit.Gate
	identify Identify
}

func (g *gate) open(ctx context.Context, method string) *rpclimit.Call {
	c, err := g.identify(ctx, method)
	return g.Open(ctx, method, c, err)
}
