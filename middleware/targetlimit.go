package middleware

import (
	"fmt"
	"net/http"

	"github.com/animalstore/gatehouse/apierror"
)

// TargetLimit returns a middleware that refuses requests whose target, path and
// query as they were sent, is longer than limit bytes with 414 (RFC 9110
// section 15.5.15). RFC 9112 section 3 recommends to support request lines of
// 8000 bytes at least.
//
// net/http never answers 414 by itself: it counts the request line among the
// header fields, and answers 431 without calling a handler. For 414 to be seen,
// [http.Server.MaxHeaderBytes] must be well above limit.
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
