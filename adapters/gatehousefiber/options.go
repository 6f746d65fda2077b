package gatehousefiber

import (
	"errors"
	"net/http"

	"github.com/gofiber/fiber/v3"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Options are optional settings of [New]. The zero value works. Each field means what the
// field of limit.Options with the same name means, which is described in more detail.
type Options struct {
	// Cost returns how many units a request costs, at least 1. Nil means 1.
	Cost func(c fiber.Ctx) int64

	// FailOpen admits what the engine cannot decide.
	FailOpen bool

	// Headers are the header fields that tell clients what they have left.
	Headers limit.HeaderSet

	// Refund gives back the units of a request that ended in a 5xx or in a panic. The
	// limiter must be a engine.Adjuster. Fiber does not say whether the client has
	// disconnected: a client that does, and makes the service fail by it, gets its
	// units back, as one does that breaks a streamed body (fiber.Config.StreamRequestBody)
	// off. A body that is streamed (SendStreamWriter) is sent after the handler, and what
	// goes wrong then is not seen.
	Refund bool

	// ChargeIf reports whether a request stays charged, by the status of its response.
	// The limiter must be a engine.Adjuster.
	ChargeIf func(c fiber.Ctx, status int) bool

	// Context makes the decision reachable for the handlers, for usage and for settling
	// a cost that is known only afterwards: limit.FromContext(c.Context()). A body
	// that is streamed is sent when c must no longer be used; keep the reservation for
	// it.
	Context bool

	// Shadow refuses nothing: requests are decided, charged and observed, and all are
	// served.
	Shadow bool

	// Observe is called with each decision before the request is served or denied. For
	// metrics, call CallDecision of package telemetry with c.Context().
	Observe func(c fiber.Ctx, caller ratelimit.Caller, d ratelimit.Decision, err error)

	// Deny writes the response to a request that is limited, banned or suspended: the
	// service's own body. The status and the header fields are already set. An error that
	// it returns is answered by the error handler of the app. Nil means Errors.
	Deny func(c fiber.Ctx, caller ratelimit.Caller, d ratelimit.Decision) error

	// Errors writes all responses to refused requests that Deny does not write. Nil
	// works.
	Errors *apierror.Responder
}

// forHTTP returns these options for limit.New.
func (o Options) forHTTP() limit.Options {
	h := limit.Options{
		FailOpen: o.FailOpen, Headers: o.Headers, Context: o.Context, Shadow: o.Shadow, Errors: o.Errors,
	}
	if o.Cost != nil {
		h.Cost = func(r *http.Request) int64 { return o.Cost(callOf(r).c) }
	}
	if o.Refund || o.ChargeIf != nil {
		h.ChargeIf = func(r *http.Request, status int) bool {
			return !(o.Refund && status >= 500) && (o.ChargeIf == nil || o.ChargeIf(callOf(r).c, status))
		}
	}
	if o.Observe != nil {
		h.Observe = func(r *http.Request, caller ratelimit.Caller, d ratelimit.Decision, err error) {
			o.Observe(callOf(r).c, caller, d, err)
		}
	}
	if o.Deny != nil {
		h.Deny = func(w http.ResponseWriter, r *http.Request, caller ratelimit.Caller, d ratelimit.Decision) {
			call := callOf(r)
			setHeader(call.c, w.Header())
			call.c.Status(limit.Denial(caller, &d).Status)
			err := o.Deny(call.c, caller, d)
			if e, ok := errors.AsType[*fiber.Error](err); !ok || e != nil {
				call.denyErr = err
			}
		}
	}
	return h
}
