// Package gatehousegin runs net/http middlewares inside Gin:
//
//	router := gin.New()
//	gatehousegin.SetErrors(router, errs) // 404 and 405 in the envelope
//	router.Use(gatehousegin.Wrap(
//		middleware.RequestID, middleware.AccessLog(logger), errs.Recover, limit,
//	), gatehousegin.ErrorHandler(errs)) // errors of c.Error too
//
// Gin has no function for this: gin.WrapH runs a middleware before the handlers and not around
// them, so that a refused request is served as well. In a function that calls c.Next inside the
// middleware, the handlers write to the ResponseWriter of Gin, and the middleware sees nothing
// of the response: a 5xx is not refunded, and the log has the wrong status.
//
// With Wrap the handlers write to the ResponseWriter that the middleware passes on, and
// get its request. A middleware that refuses a request, or recovers from a panic, aborts
// the chain. The pattern of the request is the route of Gin, such as /pets/:id, and its
// path values are the parameters. What middlewares put into the context, such as the
// principal of package bearer, is in c.Request.Context(), and in c only if
// Engine.ContextWithFallback is set.
//
// Gin's own 404 and 405 are written outside all middlewares: the log has their status,
// but counts no bytes; SetErrors replaces them. gin.Recovery, unlike [apierror.Responder.Recover],
// also recovers from [http.ErrAbortHandler], so that a response that was broken off
// looks complete to the client.
package gatehousegin

import (
	"context"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/animalstore/gatehouse/internal/response"
	"github.com/animalstore/gatehouse/middleware"
)

// Wrap returns a handler for [gin.Engine.Use], a group or a route, that runs the
// middlewares around the handlers after it. The first middleware is the outermost. Each
// is called once, when Wrap is; nil ones are skipped. A request is copied once for all of
// them, so that one Wrap of several costs less than several of one.
//
// Handlers of Gin after it find the request of the innermost middleware in c.Request,
// with its context and its body, and it stays there for handlers around it. They write
// to the ResponseWriter of the innermost middleware; after the chain c.Writer is again
// what it was.
//
// Middlewares must derive the context of the request from the one that they get, and must call
// the handler inside them in the same goroutine. [http.TimeoutHandler] does not, so that its
// answer is sent only when the handlers have returned. [gin.Engine.HandleContext] runs them
// again: a limit counts the request twice.
func Wrap(m ...middleware.Middleware) gin.HandlerFunc {
	h := middleware.Chain(http.HandlerFunc(serveNext), m...)
	return func(c *gin.Context) {
		outer := c.Request
		if route := c.FullPath(); route != "" {
			outer.Pattern = route
		}
		response.ShareTrailers(outer)
		served := &call{Context: outer.Context(), gin: c}
		served.writer = writer{gin: c.Writer, status: c.Writer.Status(), size: c.Writer.Size()}
		inner := outer.WithContext(served)
		for _, p := range c.Params {
			inner.SetPathValue(p.Key, p.Value)
		}
		defer func() {
			if !served.end() {
				c.Abort() // refused, or recovered from a panic: Gin would go on in its chain
			}
			if served.writer.Written() {
				c.Writer.WriteHeaderNow() // the middlewares may have set the status alone
			}
			if outer.MultipartForm == nil {
				outer.MultipartForm = inner.MultipartForm // net/http removes its files
			}
		}()
		h.ServeHTTP(c.Writer, inner)
	}
}

// Context returns the gin.Context of a request inside Wrap, or nil. With it a
// middleware finds what handlers of Gin have set, as in
//
//	func identify(r *http.Request) (ratelimit.Caller, error) {
//		return ratelimit.Caller{Subject: "user:" + gatehousegin.Context(r).GetString("user"), Plan: free}, nil
//	}
//
// It must not be used after the handlers have returned: Gin uses it for another request.
func Context(r *http.Request) *gin.Context {
	if served, ok := r.Context().Value(callKey{}).(*call); ok {
		return served.gin
	}
	return nil
}

type callKey struct{}

// A call is a request on its way through the middlewares of one Wrap.
type call struct {
	context.Context
	gin    *gin.Context
	writer writer // of the handlers

	// mu is locked while the handlers run, so that Gin does not reuse the Context
	// before a goroutine of a middleware has left it.
	mu       sync.Mutex
	ended    bool // the middlewares have returned
	returned bool // the handlers have returned, and did not panic
}

func (s *call) Value(key any) any {
	if key == (callKey{}) {
		return s
	}
	return s.Context.Value(key)
}

// end waits for the handlers and reports whether they have returned.
func (s *call) end() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return s.returned
}

// serveNext is the handler inside the middlewares: it runs the rest of Gin's chain.
func serveNext(w http.ResponseWriter, r *http.Request) {
	s, ok := r.Context().Value(callKey{}).(*call)
	if !ok {
		panic("gatehousegin: a middleware has replaced the context of the request; it must derive one from it")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return // called in a goroutine after the response
	}
	c := s.gin
	s.writer.ResponseWriter = w
	c.Request, c.Writer = r, &s.writer
	defer func() { c.Writer = s.writer.gin }()
	c.Next()
	s.writer.passStatus()
	s.returned = true
}
