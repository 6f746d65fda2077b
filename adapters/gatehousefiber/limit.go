// Package gatehousefiber limits the requests of a Fiber service:
//
//	limited, err := gatehousefiber.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
//		return ratelimit.Caller{Subject: "user:" + userOf(gatehousefiber.Ctx(r)), Plan: free}, nil
//	}, limit.Options{ChargeIf: limit.NotServerError})
//	app.Use(limited)
//
// Fiber runs handlers outside net/http. Its adaptor.HTTPMiddleware calls a middleware of
// net/http before the handlers of Fiber, not around them, with a ResponseWriter and a request
// that the handlers do not use. A recovery, a refund, an access log or a limit of requests in
// progress seems to work and sees nothing. Therefore no other middleware of Gatehouse works in
// Fiber. [New] runs the middleware of package limit with a request and a response made from
// Fiber's. For everything else, put a gateway of net/http in front of the service, or serve it
// with a router of net/http.
//
// With Prefork each process has an engine of its own, and a client may use the limit once
// in each. Share one with package redislimit.
//
// Package clientip finds the address of a client behind proxies. c.IP() is the proxy
// or, with TrustProxy, what the field ProxyHeader says, and X-Forwarded-For begins with
// what the client sent.
package gatehousefiber

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v3"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// New returns a handler for Fiber that counts each request for the caller that identify
// returns, and answers as limit.New does. identify and the functions in the options get
// the line and the header of the request, and the address of the peer as its RemoteAddr;
// [Ctx] has the rest. All of these and the subjects are copied: strings of Fiber are valid
// only during the request.
//
// The path of that line is what the client sent, and Fiber serves /SEARCH, /search/ and
// /search#x by the route /search too. If a route costs more, give it a limit of its own, with
// the Name and the engine of the limit of the other routes, so that they share usage:
//
//	app.Get("/search", costly, search)
//
// If identify returns a *fiber.Error, such as fiber.ErrUnauthorized, or an error that wraps one,
// the error handler of the app answers it, and it is not logged. Other errors are answered as
// limit.New says, and so are those that also wrap ratelimit.ErrUnavailable. If a handler returns
// an error, New calls the error handler of the app, so that it sees the status, and returns nil.
//
// Fiber does not say whether the client has disconnected. With a refund, a client that
// disconnects, and makes the service fail by it, gets its units back. So does one that breaks a
// streamed body (fiber.Config.StreamRequestBody) off. A body that is streamed
// (SendStreamWriter) is sent after the handler. What goes wrong then is not seen, and with
// limit.Options.Settle it needs a settlement that was taken from c.Context() before. New refuses
// limit.Options.Hold.
func New(l ratelimit.Limiter, identify func(r *http.Request) (ratelimit.Caller, error), opts limit.Options) (fiber.Handler, error) {
	if identify == nil {
		return nil, errors.New("gatehousefiber: New: identify must not be nil")
	}
	if opts.Hold != 0 {
		return nil, errors.New("gatehousefiber: New: Options.Hold must be 0, since a streamed body is sent after the handler")
	}
	limited, err := limit.New(l, func(r *http.Request) (ratelimit.Caller, error) {
		call := callOf(r)
		return call.caller, call.err
	}, opts)
	if err != nil {
		return nil, err
	}
	h := limited(serveNext(opts.Settle))
	return func(c fiber.Ctx) error {
		call := &call{c: c}
		r := request(call)
		caller, err := identify(r)
		native, _ := errors.AsType[*fiber.Error](err) // the error handler of the app would panic at a nil one
		if native != nil && !opts.Shadow && !errors.Is(err, ratelimit.ErrUnavailable) {
			return err
		}
		call.caller, call.err = copied(caller), err
		h.ServeHTTP(&answer{c: c, header: make(http.Header)}, r)
		return nil
	}, nil
}

// Ctx returns the context of Fiber of a request that identify or a function of the options
// got, for c.Locals and the like.
func Ctx(r *http.Request) fiber.Ctx { return callOf(r).c }

// A call is a request of Fiber on its way through a middleware of net/http.
type call struct {
	c      fiber.Ctx
	caller ratelimit.Caller // what identify returned
	err    error            // what identify returned
}

type callKey struct{}

func callOf(r *http.Request) *call { return r.Context().Value(callKey{}).(*call) }

// copied returns c with subjects that are valid after the request. Also may belong to
// several requests.
func copied(c ratelimit.Caller) ratelimit.Caller {
	c.Subject = strings.Clone(c.Subject)
	c.Also = slices.Clone(c.Also)
	for i := range c.Also {
		c.Also[i].Subject = strings.Clone(c.Also[i].Subject)
	}
	return c
}

// request returns a request of net/http without a body, and copies all that Fiber reuses.
func request(call *call) *http.Request {
	c := call.c
	r := &http.Request{
		Method: c.Method(), URL: new(url.URL), Host: strings.Clone(c.Host()), RequestURI: strings.Clone(c.OriginalURL()),
		Header: make(http.Header), Body: http.NoBody, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		RemoteAddr: c.RequestCtx().RemoteAddr().String(),
	}
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil {
		r.URL = u
	}
	for name, line := range c.Request().Header.All() {
		r.Header.Add(string(name), string(line))
	}
	r.Header.Del(fiber.HeaderHost) // as in net/http
	return r.WithContext(context.WithValue(c.Context(), callKey{}, call))
}

// serveNext returns a handler that runs the rest of the handlers of Fiber, and tells
// their status. If withContext is true, they get the context of the request.
func serveNext(withContext bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r).c
		setHeader(c, w.Header())
		if withContext {
			c.SetContext(r.Context())
		}
		if err := c.Next(); err != nil {
			if err := c.App().ErrorHandler(c, err); err != nil {
				_ = c.SendStatus(http.StatusInternalServerError)
			}
		}
		// The handlers may have changed these fields, or removed all fields: a static file that
		// was not modified and a proxied response do.
		maps.DeleteFunc(w.Header(), func(name string, _ []string) bool { return len(c.Response().Header.Peek(name)) > 0 })
		w.WriteHeader(c.Response().StatusCode())
	}
}

// answer is the ResponseWriter of a refused request.
type answer struct {
	c       fiber.Ctx
	header  http.Header
	written bool // WriteHeader was called
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	a.written = true
	setHeader(a.c, a.header)
	a.c.Status(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if !a.written {
		a.WriteHeader(http.StatusOK) // as net/http
	}
	return a.c.Write(p)
}

// setHeader sets the fields of a response of Fiber.
func setHeader(c fiber.Ctx, h http.Header) {
	for name, lines := range h {
		switch name {
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
