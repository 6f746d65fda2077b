package gatehouseconnect

import (
	"context"
	"net/http"
	"net/netip"

	"connectrpc.com/connect"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Options are optional settings of [New]. The zero value works.
type Options struct {
	// Cost returns how many units a call costs, at least 1. method is the full name, such
	// as "/pets.v1.Pets/Get". Nil means 1.
	Cost func(ctx context.Context, method string) int64

	// OnFailure is what to do when the engine cannot decide.
	OnFailure ratelimit.OnFailure

	// Headers are the fields in the header of the response. 0 means
	// [ratelimit.XRateLimit]. Whatever Headers is, a call that is limited or banned has
	// Retry-After.
	Headers ratelimit.HeaderSet

	// Refund gives back the units of a call that ended in a panic or with a code that is
	// the fault of the server: unknown, deadline_exceeded, unimplemented, internal,
	// unavailable or data_loss. The limiter must be a [ratelimit.Refunder].
	//
	// A call is not refunded if its context has ended, since its client has cancelled it
	// or has set the deadline. deadline_exceeded is refunded only if the call has no
	// deadline. A deadline that the server sets itself belongs further in.
	Refund bool

	// Context makes the decision reachable from the context of the call, for usage, logs
	// and metrics, and for settling a cost that is known only afterwards, such as that of
	// the messages of a stream; see [ratelimit.FromContext].
	Context bool

	// Shadow refuses nothing: calls are decided, charged and observed, and all are
	// served, without these fields. No call is a strike, and no ban starts.
	Shadow bool

	// Observe is called with each decision before the call is served or refused, but
	// not for exempt callers: see [ratelimit.Options]. It must be safe for concurrent use.
	// Metrics: CallDecision of package telemetry.
	Observe func(ctx context.Context, method string, c ratelimit.Caller, d ratelimit.Decision, err error)

	// Errors logs why a call could not be decided. Nil works.
	Errors *apierror.Responder
}

// A Call is what identify knows of a call before it is served.
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
