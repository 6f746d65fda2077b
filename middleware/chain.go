package middleware

import (
	"net/http"
	"slices"

	"github.com/animalstore/gatehouse/apierror"
)

// Middleware returns a handler that does something before or after next, or
// answers in its place.
type Middleware = func(next http.Handler) http.Handler

// Chain returns h inside of m. The first middleware is the outermost: it sees a
// request first and the response last. A nil one is left out, which makes it
// easy to have one by configuration.
func Chain(h http.Handler, m ...Middleware) http.Handler {
	for _, wrap := range slices.Backward(m) {
		if wrap != nil {
			h = wrap(h)
		}
	}
	return h
}

// Recover returns a middleware that answers 500 in the envelope of rs when what
// is inside panics. It is [apierror.Responder.Recover], whose documentation says
// the rest.
func Recover(rs *apierror.Responder) Middleware {
	return rs.Recover
}
