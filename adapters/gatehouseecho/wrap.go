// Package gatehouseecho runs net/http middlewares inside Echo:
//
//	e := echo.New()
//	e.HTTPErrorHandler = gatehouseecho.ErrorHandler(errs) // all errors in the envelope
//	e.Use(gatehouseecho.Wrap(
//		middleware.RequestID, middleware.AccessLog(logger), errs.Recover, limit,
//	))
//
// It is for Echo v5, the current version. Echo v4 gets only security fixes from 2027 on.
//
// With echo.WrapMiddleware, an error that a handler returns is answered outside the middleware,
// which takes the response for an empty 200: it is not refunded, and the log has the wrong status.
//
// Wrap calls the error handler of Echo inside the middleware. The error is returned as
// well, for middlewares of Echo further out, as RequestLogger does it: an error
// handler of your own must return immediately if the response is committed. Middlewares that
// change errors belong inside Wrap. The pattern of the request is the route of Echo,
// such as /pets/:id, and its path values are the parameters.
package gatehouseecho

import (
	"context"
	"net/http"
	"sync"

	"github.com/labstack/echo/v5"

	"github.com/animalstore/gatehouse/internal/response"
	"github.com/animalstore/gatehouse/middleware"
)

// Wrap returns a middleware for [echo.Echo.Use], a group or a route, that runs the
// middlewares around the handlers after it. The first one is the outermost. Each is
// called once, when Wrap is; nil ones are skipped. A request is copied once for all of
// them, so that one Wrap of several costs less than several of one.
//
// Handlers of Echo after it find the request of the innermost middleware in c.Request(),
// with its context and its body, and it stays there for handlers around it. They write
// to the ResponseWriter of the innermost middleware; after that c.Response() is again
// what it was.
//
// Middlewares must derive the context of the request from the one that they get, and must call
// the handler inside them in the same goroutine. [http.TimeoutHandler] does not, so that its
// answer is sent only when the handlers have returned.
func Wrap(m ...middleware.Middleware) echo.MiddlewareFunc {
	h := middleware.Chain(http.HandlerFunc(serveNext), m...)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			outer := c.Request()
			response.ShareTrailers(outer)
			served := &call{Context: outer.Context(), echo: c, next: next}
			inner := outer.WithContext(served)
			for _, p := range c.PathValues() {
				inner.SetPathValue(p.Name, p.Value)
			}
			defer func() {
				_ = served.end() // if a middleware panicked; its error went to Echo before
				outer.Pattern = inner.Pattern
				if outer.MultipartForm == nil {
					outer.MultipartForm = inner.MultipartForm // net/http removes its files
				}
			}()
			h.ServeHTTP(c.Response(), inner)
			return served.end()
		}
	}
}

// Context returns the echo.Context of a request inside Wrap, or nil. With it a
// middleware finds what handlers of Echo have set, as in
//
//	func identify(r *http.Request) (ratelimit.Caller, error) {
//		user, err := echo.ContextGet[string](gatehouseecho.Context(r), "user")
//		return ratelimit.Caller{Subject: "user:" + user, Plan: free}, err
//	}
//
// It must not be used after the handlers have returned: Echo uses it for another request.
func Context(r *http.Request) *echo.Context {
	if served, ok := r.Context().Value(callKey{}).(*call); ok {
		return served.echo
	}
	return nil
}

type callKey struct{}

// A call is a request on its way through the middlewares of one Wrap.
type call struct {
	context.Context
	echo *echo.Context
	next echo.HandlerFunc

	// mu is locked while the handlers run, so that Echo does not reuse the Context
	// before a goroutine of a middleware has left it.
	mu    sync.Mutex
	ended bool  // the middlewares have returned
	err   error // that the handlers have returned
}

func (s *call) Value(key any) any {
	if key == (callKey{}) {
		return s
	}
	return s.Context.Value(key)
}

// end waits for the handlers and returns their error.
func (s *call) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return s.err
}

// serveNext is the handler inside the middlewares: it runs the rest of Echo's chain.
func serveNext(w http.ResponseWriter, r *http.Request) {
	s, ok := r.Context().Value(callKey{}).(*call)
	if !ok {
		panic("gatehouseecho: a middleware has replaced the context of the request; it must derive one from it")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return // called in a goroutine after the response
	}
	c, outer := s.echo, s.echo.Response()
	c.SetRequest(r)
	tracked := response.Track(w)
	inner := echo.NewResponse(tracked, c.Logger())
	c.SetResponse(inner)
	defer c.SetResponse(outer)
	s.err = s.next(c)
	if tracked.Status() == http.StatusSwitchingProtocols { // hijacked, which Echo does not notice
		inner.Committed = true
		if res, _ := echo.UnwrapResponse(outer); res != nil {
			res.Committed = true
		}
	}
	if s.err != nil {
		c.Echo().HTTPErrorHandler(c, s.err) // writes nothing if the response has begun
	}
}
