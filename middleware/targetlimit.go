package middleware

import (
	"fmt"
	"net/http"

	"github.com/animalstore/gatehouse/apierror"
)

// TargetLimit returns a middleware that answers 414 (RFC 9110 section 15.5.15) if the
// target of a request, path and query as they were sent, is longer than limit bytes.
// RFC 9112 section 3 recommends to support request lines of at least 8000 bytes.
//
// net/http never answers 414 itself: it counts the request line among the header
// fields, and answers 431 without calling a handler. Set [http.Server.MaxHeaderBytes]
// well above limit, or clients get 431 instead of 414.
func TargetLimit(limit int, rs *apierror.Responder) Middleware {
	tooLong := apierror.New(http.StatusRequestURITooLong, apierror.CodeURITooLong,
		fmt.Sprintf("The request target is longer than %d bytes.", limit))

	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(r.RequestURI) > limit {
				rs.Respond(w, r, tooLong)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
