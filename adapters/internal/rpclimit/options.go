package rpclimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// Options are those of the adapters, which document them.
type Options struct {
	Cost     func(ctx context.Context, method string) int64
	FailOpen bool
	Headers  limit.HeaderSet
	Refund   bool
	ChargeIf func(ctx context.Context, method string, err error) bool
	Context  bool
	Shadow   bool
	Observe  func(ctx context.Context, method string, c ratelimit.Caller, d ratelimit.Decision, err error)
	Deny     func(ctx context.Context, method string, c ratelimit.Caller, d ratelimit.Decision) error
	Errors   *apierror.Responder
}

// A Gate decides calls. It never changes, and is safe for concurrent use.
type Gate struct {
	Options
	adapter  string
	native   func(error) bool
	limiter  ratelimit.Limiter
	adjuster engine.Adjuster // nil: no call is given back
}

// New returns a Gate. Errors begin with the name of the adapter. native reports whether
// an error of identify or Options.Deny has the form of the framework, and is sent as it
// is. identifies says that the adapter has an identify function.
func New(adapter string, l ratelimit.Limiter, identifies bool, opts Options, native func(error) bool) (*Gate, error) {
	switch {
	case nilvalue.In(l):
		return nil, errors.New(adapter + ": the limiter must not be nil")
	case !identifies:
		return nil, errors.New(adapter + ": identify must not be nil")
	}
	// The options that both have are checked by the middleware.
	nobody := func(*http.Request) (ratelimit.Caller, error) { return ratelimit.Caller{}, nil }
	same := limit.Options{Headers: opts.Headers}
	if opts.Refund || opts.ChargeIf != nil {
		same.ChargeIf = limit.NotServerError
	}
	if _, err := limit.New(l, nobody, same); err != nil {
		return nil, fmt.Errorf("%s: %w", adapter, err)
	}
	g := &Gate{Options: opts, adapter: adapter, limiter: l, native: native}
	if opts.Refund || opts.ChargeIf != nil {
		g.adjuster, _ = l.(engine.Adjuster)
	}
	return g, nil
}
