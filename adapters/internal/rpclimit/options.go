// Package rpclimit decides and serves calls of RPC frameworks by the middleware of package
// limit. Packages gatehousegrpc and gatehouseconnect carry its answers in the form of their
// framework:
//
//	gate, err := rpclimit.New("gatehousegrpc", limiter, identify, rpclimit.Options{}, native, panicked)
//	call := gate.Serve(rpclimit.Request(ctx, method, header, remoteAddr), func(c *rpclimit.Call) (rpclimit.Code, error) {
//		err := handler(c.Request.Context(), ...)
//		return codeOf(err), err
//	})
//	if call.Denial != nil { ... } // refuse the call
package rpclimit

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Options are the options of the adapters, which document them.
type Options struct {
	limit.Options // with no ChargeIf
	ChargeIf      func(r *http.Request, err error) bool
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
	limited  http.Handler
	identify Identify
	native   func(error) bool
	panicked error
}

// New returns a Gate. Errors begin with the name of the adapter. native reports whether
// an error of identify has the form of the framework, and is sent as it is. panicked is what
// Options.ChargeIf gets of a handler that panicked.
func New(adapter string, l ratelimit.Limiter, identify Identify, opts Options, native func(error) bool, panicked error) (*Gate, error) {
	g := &Gate{Options: opts, identify: identify, native: native, panicked: panicked}
	errs := apierror.Responder{Write: g.refuse}
	if opts.Errors != nil {
		errs = *opts.Errors
		errs.Write = g.refuse
	}
	own := opts.Options
	if own.ChargeIf != nil {
		return nil, fmt.Errorf("%s: a call has no HTTP status: set Options.ChargeIf, not limit.Options.ChargeIf", adapter)
	}
	own.Observe, own.Errors = g.observe, &errs
	if opts.ChargeIf != nil {
		own.ChargeIf = g.chargeIf
	}
	asked := g.identified
	if identify == nil {
		asked = nil
	}
	limited, err := limit.New(l, asked, own)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", adapter, err)
	}
	g.limited = limited(http.HandlerFunc(g.next))
	return g, nil
}
