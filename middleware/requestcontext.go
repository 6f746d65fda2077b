package middleware

import (
	"context"
	"net/http"

	"github.com/animalstore/gatehouse/internal/response"
)

// requestContext is the context of a request with what [RequestID] and [AccessLog]
// know about it. The outer one of them makes it. It saves [context.WithValue] boxing
// the ID, and its array is the header field's value: one allocation instead of three.
type requestContext struct {
	context.Context
	id   [1]string // "" without RequestID
	line *logLine  // nil without AccessLog
}

type requestContextKey struct{}

func (c *requestContext) Value(key any) any {
	if _, ok := key.(requestContextKey); ok {
		return c
	}
	return c.Context.Value(key)
}

// requestContextOf returns the requestContext that ctx derives from, or nil.
func requestContextOf(ctx context.Context) *requestContext {
	c, _ := ctx.Value(requestContextKey{}).(*requestContext)
	return c
}

// withRequestContext returns r with its requestContext, or a copy of r with a new
// one.
func withRequestContext(r *http.Request) (*http.Request, *requestContext) {
	if c := requestContextOf(r.Context()); c != nil {
		return r, c
	}
	c := &requestContext{Context: r.Context()}
	return r.WithContext(c), c
}

// serve serves inner, which withRequestContext made of outer.
func (c *requestContext) serve(next http.Handler, w http.ResponseWriter, outer, inner *http.Request) {
	if inner == outer {
		next.ServeHTTP(w, inner)
		return
	}
	response.ServeCopy(next, w, outer, inner)
}
