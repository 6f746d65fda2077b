package middleware

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"

	"github.com/animalstore/gatehouse/internal/response"
)

const (
	requestIDHeader = "X-Request-Id" // in canonical form
	maxRequestID    = 64
)

// RequestID is a middleware that gives every request an ID, which a client can
// quote and an operator can find in the log. The ID is in the context, see
// [RequestIDFrom], and in the response as X-Request-Id.
//
// An incoming X-Request-Id is used if it is there on exactly one line and matches
//
//	^[A-Za-z0-9._-]{1,64}$
//
// which is safe to log. Otherwise the ID is new: 128 bits from crypto/rand in 32
// hexadecimal digits. An ID that a client chose is not unique: do not use it as a
// key. A request that already has an ID keeps it.
func RequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner, ctx := withRequestContext(r)
		if ctx.id[0] == "" {
			if lines := r.Header[requestIDHeader]; len(lines) == 1 && isRequestID(lines[0]) {
				ctx.id[0] = lines[0]
			} else {
				ctx.id[0] = newRequestID()
			}
			w.Header()[requestIDHeader] = ctx.id[:]
		}
		ctx.serve(next, w, r, inner)
	})
}

// RequestIDFrom returns the ID that [RequestID] gave to the request ctx belongs
// to, or "".
func RequestIDFrom(ctx context.Context) string {
	if c := requestContextOf(ctx); c != nil {
		return c.id[0]
	}
	return ""
}

func newRequestID() string {
	var random [16]byte
	rand.Read(random[:]) // never fails
	var digits [2 * len(random)]byte
	hex.Encode(digits[:], random[:])
	return string(digits[:])
}

func isRequestID(s string) bool {
	if s == "" || len(s) > maxRequestID {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

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
