package gatehousefiber

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v3"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// New returns a handler for Fiber that counts each request for the caller that identify
// returns, and answers as limit.New does. Subjects are copied, so that they may be
// strings of Fiber, which are valid only during the request.
//
// If identify returns a *fiber.Error, such as fiber.ErrUnauthorized, or an error that
// wraps one, the error handler of the app answers it; other errors are answered as
// limit.New says. If a handler returns an error, New calls the error handler of the
// app, so that it sees the status, and returns nil.
func New(l ratelimit.Limiter, identify func(c fiber.Ctx) (ratelimit.Caller, error), opts Options) (fiber.Handler, error) {
	if identify == nil {
		return nil, errors.New("gatehousefiber: New: identify must not be nil")
	}
	limited, err := limit.New(l, func(r *http.Request) (ratelimit.Caller, error) {
		call := callOf(r)
		return call.caller, call.err
	}, opts.forHTTP())
	if err != nil {
		return nil, err
	}
	h := limited(serveNext(opts.Context))
	return func(c fiber.Ctx) error {
		caller, err := identify(c)
		switch e, ok := errors.AsType[*fiber.Error](err); {
		case ok && e == nil: // an error handler would panic, and end the process
			err = errors.New("gatehousefiber: identify returned a nil *fiber.Error")
		case ok && !opts.Shadow:
			return err
		}
		call := &call{c: c, caller: copied(caller), err: err}
		h.ServeHTTP(&answer{c: c, header: make(http.Header)}, request(call))
		return call.denyErr
	}, nil
}

// A call is a request of Fiber on its way through a middleware of net/http.
type call struct {
	c       fiber.Ctx
	caller  ratelimit.Caller // what identify returned
	err     error            // what identify returned
	denyErr error            // what Options.Deny returned
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

// request returns as much of a request of net/http as a limit asks for: the method, what
// the client accepts, and the context.
func request(call *call) *http.Request {
	c := call.c
	r := &http.Request{
		Method: c.Method(), URL: new(url.URL), Host: c.Host(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{fiber.HeaderAccept: linesOf(c, fiber.HeaderAccept)},
	}
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
		clear(w.Header()) // the handlers may have changed these fields
		w.WriteHeader(c.Response().StatusCode())
	}
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

// ClientAddr returns the address of the client that sent a request through the proxies
// that source trusts, for clientip.NetworkSubject. It needs no setting of Fiber.
func ClientAddr(c fiber.Ctx, source *clientip.Source) netip.Addr {
	peer, _ := netip.AddrFromSlice(c.RequestCtx().RemoteIP())
	return source.AddrFrom(peer, func(name string) []string { return linesOf(c, name) })
}

// linesOf returns the values of a field of the request, one for each line.
func linesOf(c fiber.Ctx, name string) (lines []string) {
	for _, line := range c.Request().Header.PeekAll(name) {
		lines = append(lines, string(line))
	}
	return lines
}
