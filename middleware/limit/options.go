package limit

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// Options are optional settings of the middleware. The zero value works.
type Options struct {
	// Name keeps limits on one engine apart. Limits with the same Name share usage and bans, in
	// one process or in several. So do limits without a Name: give the second limit of an
	// engine a Name.
	//
	// For each subject user:ann that identify returns, also in Also, the engine counts and
	// bans name/user:ann. A Name has no slash and no colon. In a limit without a Name,
	// subjects begin with a kind and a colon, as user:ann does. Otherwise search/user:ann
	// would also be user:ann in the limit search.
	Name string

	// Cost returns how many units a request costs, at least 1. Nil means 1. Every
	// plan must allow the largest cost in each of its quotas: a request that costs
	// more is answered with 400. Cost is called for callers without a key too: return 1
	// if their plan counts requests. If the middleware is around an [http.ServeMux], the mux
	// has not matched the request when Cost is called: r.Pattern and the path values are
	// empty. If the cost depends on the body, parse the body in a middleware outside, and
	// keep the result in the context.
	Cost func(r *http.Request) int64

	// FailOpen admits requests that the engine cannot decide. By default they are answered
	// with 503 and Retry-After. It also applies to errors of identify that wrap
	// [ratelimit.ErrUnavailable], and not to errors that wrap [ratelimit.ErrInvalid].
	// Only Observe gets the error; a log that says when an outage begins comes from package
	// failover.
	FailOpen bool

	// Headers are the header fields that tell clients what they have left. 0 means
	// [XRateLimit]. Whatever Headers is, a request that is limited or banned is answered
	// with Retry-After.
	Headers HeaderSet

	// ChargeIf reports whether a request stays charged, by the status of its response. If it
	// returns false, the units are given back. With [NotServerError] a service gives back
	// requests that it has failed to serve, and with functions of its own it charges only
	// failed sign-ins, or everything but 304. The limiter must be an [engine.Adjuster].
	//
	// Each request is charged before it is served, so that concurrent ones cannot exceed the
	// limit, and the header fields count it. ChargeIf is called after the handler has
	// returned. The status is the final one, also if the response is still being sent: 200 if
	// the handler wrote nothing, 101 if it took the connection over, and otherwise 500 if it
	// panicked. A refund has half a second and a context of its own, so that a deadline which
	// ended the request does not stop it.
	//
	// Requests abandoned by the client are not refunded. Their context is cancelled, rather
	// than ended by a deadline, when the handler returns, or within 10 ms after that if a write
	// has failed. Over HTTP/1 net/http cancels the context only after the body was read to its
	// end, and not if the client had already sent a part of its next request. A client whose
	// disconnection net/http does not notice, also behind a proxy that keeps the connection, is
	// refunded as if it had stayed.
	//
	// A request is not refunded either if reading its body has failed, or if a Read still
	// waited for the client when the handler returned or closed the body. Answer any other
	// fault of the client with a 4xx.
	ChargeIf func(r *http.Request, status int) bool

	// Settle lets handlers settle a cost that is known only afterwards, and read the
	// decision, for usage, logs and metrics: [FromContext] returns the [Settlement] of the
	// request. Each request is then copied, at a cost of two allocations. A request that ends
	// before it was settled costs its estimate, unless ChargeIf returns false for its status.
	Settle bool

	// Hold is how long after a crash the charges of unsettled requests stay, from 1s to 1h. After
	// that, the next request with a Hold, or the next Peek, of the same subject gives them back
	// before it is answered. For requests without a Hold they count until then. 0 means that they
	// stay until their windows end. A charge is held until the first call of Settle. Without one
	// it is held until the handler returns, and so is a charge with a cost of its own. It then stays
	// as it is, which takes one more call of the engine. Hold needs Settle, and a limiter that is an
	// [engine.Holder].
	Hold time.Duration

	// Shadow refuses nothing. Decisions are made, charged and observed, and every
	// request is served, also if the engine fails or the call is invalid. No request
	// is a strike, and no ban starts. The headers (except Retry-After) are set, unless
	// a middleware of this package further out has set some.
	//
	// To try a new plan beside the one in force, add a second middleware in shadow
	// mode, with a Name of its own or an engine of its own. Otherwise each request would be
	// charged twice, since usage belongs to a subject and not to a plan.
	Shadow bool

	// Observe is called with each decision before the request is served or denied, but not if
	// the client cancelled before the decision. It is called once for a request: c is its
	// caller, as in [Settlement.Caller], and d the decision that the response shows. If a
	// request has several charges, d.Plan says which of them it is about. If the engine could
	// not decide, err says why, and d need not be a refusal; d.Plan is nil if c.Plan is not
	// valid or err comes from identify. If the request costs more than a quota of the plan,
	// err wraps [ratelimit.ErrCostExceedsLimit], also in shadow mode. Observe runs in the
	// goroutine of the request, must be safe for concurrent use, and must not panic.
	Observe func(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error)

	// Errors writes all responses to refused requests, in the service's own form and
	// language if it has a Write or Translate. Nil works.
	Errors *apierror.Responder
}

// NotServerError is a ChargeIf that gives back the units of a request that ended in a 5xx or
// in a panic.
func NotServerError(_ *http.Request, status int) bool { return status < 500 }

func (o *Options) validate(l ratelimit.Limiter) error {
	if _, ok := l.(engine.Adjuster); o.ChargeIf != nil && !ok {
		return fmt.Errorf("limit: Options.ChargeIf needs a limiter that is an Adjuster, got %T", l)
	}
	if o.Hold != 0 {
		if _, ok := l.(engine.Holder); !ok {
			return fmt.Errorf("limit: Options.Hold needs a limiter that is a Holder, got %T", l)
		}
		if !o.Settle {
			return errors.New("limit: Options.Hold needs Options.Settle")
		}
		if o.Hold < time.Second || o.Hold > time.Hour {
			return fmt.Errorf("limit: Options.Hold must be 0, or from 1s to 1h, got %v", o.Hold)
		}
	}
	if strings.ContainsAny(o.Name, "/:") {
		return fmt.Errorf("limit: Options.Name must have no slash and no colon, got %q", o.Name)
	}
	if o.Headers > NoHeaders {
		return fmt.Errorf("limit: Options.Headers must be NoHeaders, or XRateLimit and DraftRateLimit combined, got %d", o.Headers)
	}
	return nil
}

// named returns identify with the name in front of all subjects.
func named(name string, identify func(*http.Request) (ratelimit.Caller, error)) func(*http.Request) (ratelimit.Caller, error) {
	return func(r *http.Request) (ratelimit.Caller, error) {
		c, err := identify(r)
		if c.Subject != "" {
			c.Subject = name + "/" + c.Subject
		}
		c.Also = slices.Clone(c.Also) // identify may return it for several requests
		for i := range c.Also {
			if s := &c.Also[i].Subject; *s != "" {
				*s = name + "/" + *s
			}
		}
		return c, err
	}
}
