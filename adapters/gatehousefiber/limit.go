package gatehousefiber

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v3"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Options are optional settings of [New]. The zero value works. Each is the one of
// ratelimit.Options with the same name, where more is said.
type Options struct {
	// Cost returns how many units a request costs, at least 1. Nil means 1.
	Cost func(c fiber.Ctx) int64

	// OnFailure is what to do when the engine cannot decide.
	OnFailure ratelimit.OnFailure

	// Headers are the header fields that tell clients what they have left.
	Headers ratelimit.HeaderSet

	// Refund gives back the units of a request that ended in a 5xx or in a panic. The
	// limiter must be a ratelimit.Refunder. Fiber does not say whether the client has
	// disconnected: a client that does, and makes the service fail by it, gets its
	// units back. A body that is streamed (SendStreamWriter) is sent after the
	// handler, and what goes wrong then is not seen.
	Refund bool

	// Observe is called with each decision before the request is served or denied.
	Observe func(c fiber.Ctx, caller ratelimit.Caller, d ratelimit.Decision, err error)

	// Errors writes all responses to refused requests. Nil works.
	Errors *apierror.Responder
}

// New returns a handler for Fiber that counts each request for the caller that identify
// returns, and answers as ratelimit.New does. The subject is copied, so that it may be
// a string of Fiber, which is valid only during the request.
//
// If a handler returns an error, New calls the error handler of the app, so that it sees
// the status, and returns nil.
func New(l ratelimit.Limiter, identify func(c fiber.Ctx) (ratelimit.Caller, error), opts Options) (fiber.Handler, error) {
	if identify == nil {
		return nil, errors.New("gatehousefiber: New: identify must not be nil")
	}
	o := ratelimit.Options{OnFailure: opts.OnFailure, Headers: opts.Headers, Refund: opts.Refund, Errors: opts.Errors}
	if opts.Cost != nil {
		o.Cost = func(r *http.Request) int64 { return opts.Cost(contextOf(r)) }
	}
	if opts.Observe != nil {
		o.Observe = func(r *http.Request, caller ratelimit.Caller, d ratelimit.Decision, err error) {
			opts.Observe(contextOf(r), caller, d, err)
		}
	}
	limit, err := ratelimit.New(l, func(r *http.Request) (ratelimit.Caller, error) {
		caller, err := identify(contextOf(r))
		caller.Subject = strings.Clone(caller.Subject)
		return caller, err
	}, o)
	if err != nil {
		return nil, err
	}
	h := limit(http.HandlerFunc(serveNext))
	return func(c fiber.Ctx) error {
		h.ServeHTTP(&answer{c: c, header: make(http.Header)}, request(c))
		return nil
	}, nil
}

// request returns as much of a request of net/http as a limit asks for: the method, what
// the client accepts, and the context.
func request(c fiber.Ctx) *http.Request {
	r := &http.Request{
		Method: c.Method(), URL: new(url.URL), Host: c.Host(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header),
	}
	if accept := c.Get(fiber.HeaderAccept); accept != "" {
		r.Header.Set(fiber.HeaderAccept, accept)
	}
	return r.WithContext(context.WithValue(c.Context(), contextKey{}, c))
}

type contextKey struct{}

func contextOf(r *http.Request) fiber.Ctx { return r.Context().Value(contextKey{}).(fiber.Ctx) }

// serveNext runs the rest of the handlers of Fiber, and tells their status.
func serveNext(w http.ResponseWriter, r *http.Request) {
	c := contextOf(r)
	setHeader(c, w.Header())
	if err := c.Next(); err != nil {
		if err := c.App().ErrorHandler(c, err); err != nil {
			_ = c.SendStatus(http.StatusInternalServerError)
		}
	}
	clear(w.Header()) // the handlers may have changed these fields
	w.WriteHeader(c.Response().StatusCode())
}

// answer is the ResponseWriter of a refused request.
type answer struct {
	c      fiber.Ctx
	header http.Header
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	setHeader(a.c, a.header)
	a.c.Status(status)
}

func (a *answer) Write(p []byte) (int, error) { return a.c.Write(p) }

// setHeader sets the fields of a response of Fiber, which counts the length itself.
func setHeader(c fiber.Ctx, h http.Header) {
	for name, lines := range h {
		switch name {
		case fiber.HeaderContentLength:
		case fiber.HeaderVary:
			c.Vary(lines...)
		default:
			c.Response().Header.Del(name)
			for _, line := range lines {
				c.Response().Header.Add(name, line)
			}
		}
	}
}
