package gatehouseconnect

import (
	"context"
	"errors"
	"net/http"
	"net/netip"

	"connectrpc.com/connect"

	"github.com/animalstore/gatehouse/adapters/internal/rpclimit"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Options are optional settings of [New]. The zero value works.
type Options struct {
	// Cost returns how many units a call costs, at least 1. method is the full name, such
	// as "/pets.v1.Pets/Get". Nil means 1.
	Cost func(ctx context.Context, method string) int64

	// FailOpen admits what the engine cannot decide.
	FailOpen bool

	// Headers are the fields in the header of the response. 0 means
	// [limit.XRateLimit]. Whatever Headers is, a call that is limited or banned has
	// Retry-After.
	Headers limit.HeaderSet

	// Refund gives back the units of a call that ended in a panic or with a code that is
	// the fault of the server: unknown, deadline_exceeded, unimplemented, internal,
	// unavailable or data_loss. The limiter must be a [engine.Adjuster].
	//
	// What the client can cause is not refunded: a call whose context has ended, since its
	// client has cancelled it or has set the deadline, and a stream on which receiving or
	// sending a message has failed, whatever its handler makes of that. deadline_exceeded
	// is refunded only if the call has no deadline. A deadline that the server sets itself
	// belongs further in.
	Refund bool

	// ChargeIf reports whether a call stays charged, by the error that its handler
	// returned: failed sign-ins alone, for instance. The limiter must be a
	// [engine.Adjuster]. Each call is charged before it is served, so that concurrent
	// calls cannot exceed the limit, and its header counts it. If ChargeIf returns false
	// when the call or the stream has ended, the charge is given back.
	//
	// ctx is that of the handler. err is nil if the call succeeded, although the code of
	// [connect.CodeOf] is unknown then, and has the code internal if the handler panicked.
	// It is not nil for 304 either: [connect.IsNotModifiedError] tells.
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
	// served, without the fields in Headers. No call is a strike, and no ban starts.
	Shadow bool

	// Observe is called with each decision before the call is served or refused, but
	// see [limit.Options]. It must be safe for concurrent use.
	// Metrics: CallDecision of package telemetry.
	Observe func(ctx context.Context, method string, c ratelimit.Caller, d ratelimit.Decision, err error)

	// Deny returns the error that answers a limited, banned or suspended call: the
	// service's own code, text and details. If it returns nil, the call gets the default
	// error; no result admits the call. A [connect.Error] is sent as it is. An
	// [apierror.Error] replaces the code, the reason and the text of the default error,
	// and keeps RetryInfo and QuotaFailure. Any other error is logged, and the call ends
	// with internal. The fields in the header are the same as without Deny; those in the
	// Meta of a connect.Error are added to them. c is the one that Observe gets. Calls that
	// could not be decided still get the default error. Deny must be safe for concurrent
	// use.
	Deny func(ctx context.Context, call Call, c ratelimit.Caller, d ratelimit.Decision) error

	// Errors logs why a call could not be decided. Nil works.
	Errors *apierror.Responder
}

// forGate returns these options for rpclimit.New.
func (o *Options) forGate() rpclimit.Options {
	g := rpclimit.Options{
		Cost: o.Cost, FailOpen: o.FailOpen, Headers: o.Headers, Refund: o.Refund, ChargeIf: o.ChargeIf,
		Context: o.Context, Shadow: o.Shadow, Observe: o.Observe, Errors: o.Errors,
	}
	if o.Deny != nil {
		g.Deny = func(ctx context.Context, _ string, c ratelimit.Caller, d ratelimit.Decision) error {
			err := o.Deny(ctx, ctx.Value(callKey{}).(Call), c, d)
			if e, ok := errors.AsType[*connect.Error](err); ok && e == nil {
				return nil
			}
			return err
		}
	}
	return g
}

// callKey is the key of the Call in the context that Options.Deny gets: that of a stream
// has no [connect.CallInfo] yet, which would tell the fields of the request.
type callKey struct{}

// A Call is what identify and Options.Deny know of a call before it is served.
type Call struct {
	Spec   connect.Spec // Spec.Procedure is the full name, such as "/pets.v1.Pets/Get"
	Peer   connect.Peer
	Header http.Header // of the request; it must not be changed
}

// Addr returns the address of the peer, for clientip.NetworkSubject, and the zero address
// if it has none. Behind a proxy it is the address of the proxy: see [Call.ClientAddr].
func (c Call) Addr() netip.Addr {
	at, err := netip.ParseAddrPort(c.Peer.Addr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// ClientAddr returns the address of the client that sent the call through the proxies that
// source trusts.
func (c Call) ClientAddr(source *clientip.Source) netip.Addr {
	return source.AddrFrom(c.Addr(), c.Header.Values)
}

// Identify returns the caller that a call is counted for. A [connect.Error] is the answer
// to the call; an [apierror.Error] is answered with the code that corresponds to its HTTP
// status, and its text; any other error is logged and answered with internal. It must be
// safe for concurrent use.
type Identify func(ctx context.Context, call Call) (ratelimit.Caller, error)
