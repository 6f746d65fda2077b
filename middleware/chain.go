package middleware

import (
	"net/http"
	"slices"

	"github.com/animalstore/gatehouse/apierror"
)

// Middleware returns a handler that does something before or after next, or answers
// instead of it.
type Middleware = func(next http.Handler) http.Handler

// Chain returns h wrapped in m. The first middleware is the outermost: it sees a request
// first and the response last. Nil middlewares are skipped, so that one can be switched
// off by configuration.
func Chain(h http.Handler, m ...Middleware) http.Handler {
	for _, wrap := range slices.Backward(m) {
		if wrap != nil {
			h = wrap(h)
		}
	}
	return h
}

// Recover returns a middleware that answers 500 in the envelope of rs if a handler
// further in panics. It is [apierror.Responder.Recover], which is documented in detail.
func Recover(rs *apierror.Responder) Middleware {
	return rs.Recover
}
