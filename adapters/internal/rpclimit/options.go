// Package rpclimit decides calls of RPC frameworks as the middleware of package
// ratelimit decides requests. Packages gatehousegrpc and gatehouseconnect carry its
// answers in the form of their framework:
//
//	gate, err := rpclimit.New("gatehousegrpc", engine, identify, rpclimit.Options{}, native)
//	call := gate.Open(rpclimit.Request(ctx, method, header, remoteAddr))
//	if call.Denial != nil { ... }     // refuse the call
//	defer call.Finish(ctx, code, err) // after the handler: Options.ChargeIf
package rpclimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// Options are those of the adapters, which document them.
type Options struct {
	Cost     func(r *http.Request) int64
	FailOpen bool
	Headers  limit.HeaderSet
	Context  bool
	Shadow   bool
	Observe  func(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error)
	Errors   *apierror.Responder
	ChargeIf func(r *http.Request, err error) bool
}

// Identify returns the caller that a call is counted for.
type Identify = func(r *http.Request) (ratelimit.Caller, error)

// Request returns a call as a request, with what HTTP has of it: the full name of the
// method is its path.
func Request(ctx context.Context, method string, header http.Header, remoteAddr string) *http.Request {
	r := &http.Request{
		Body:   http.NoBody,
		Method: http.MethodPost, URL: &url.URL{Path: method}, Pattern: method, Header: header, RemoteAddr: remoteAddr,
	}
	return r.WithContext(ctx)
}

// A Gate decides calls. It never changes, and is safe for concurrent use.
type Gate struct {
	Options
	adapter  string
	native   func(error) bool
	identify Identify
	limiter  ratelimit.Limiter
	adjuster engine.Adjuster // nil: no call is given back
}

// New returns a Gate. Errors begin with the name of the adapter. native reports whether
// an error of identify has the form of the framework, and is sent as it is.
func New(adapter string, l ratelimit.Limiter, identify Identify, opts Options, native func(error) bool) (*Gate, error) {
	switch {
	case nilvalue.In(l):
		return nil, errors.New(adapter + ": the limiter must not be nil")
	case identify == nil:
		return nil, errors.New(adapter + ": identify must not be nil")
	}
	// The options that both have are checked by the middleware.
	same := limit.Options{Headers: opts.Headers}
	if opts.ChargeIf != nil {
		same.ChargeIf = limit.NotServerError
	}
	if _, err := limit.New(l, identify, same); err != nil {
		return nil, fmt.Errorf("%s: %w", adapter, err)
	}
	g := &Gate{Options: opts, adapter: adapter, native: native, identify: identify, limiter: l}
	if opts.ChargeIf != nil {
		g.adjuster, _ = l.(engine.Adjuster)
	}
	return g, nil
}
