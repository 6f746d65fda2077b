package response

import (
	"mime/multipart"
	"net/http"
)

// ServeCopy serves inner, a copy of outer such as [http.Request.WithContext] makes.
// It then does for outer what net/http and outer handlers would not see: it copies
// the route that a ServeMux has set, and removes temporary files, also if next
// panics. The inner request gets the trailers of the outer one.
func ServeCopy(next http.Handler, w http.ResponseWriter, outer, inner *http.Request) {
	ShareTrailers(outer)
	if inner.Trailer == nil {
		inner.Trailer = outer.Trailer
	}
	defer func(before *multipart.Form) {
		outer.Pattern = inner.Pattern
		RemoveFiles(inner, before)
	}(outer.MultipartForm)
	next.ServeHTTP(w, inner)
}

// RemoveFiles removes the temporary files of a multipart form that was parsed
// since r.MultipartForm was before. It is deferred by handlers after which
// net/http may not do it: net/http removes only the files of the request that it
// made itself, not of a copy, and none at all if a handler panics.
func RemoveFiles(r *http.Request, before *multipart.Form) {
	if form := r.MultipartForm; form != nil && form != before {
		_ = form.RemoveAll() // what cannot be removed is left to the system
	}
}

// ShareTrailers prepares r for being copied. At the end of a chunked body net/http adds
// trailers that the client has not announced to the map of its own request, or makes one,
// which a copy would lack. ShareTrailers makes it before.
func ShareTrailers(r *http.Request) {
	if r.Trailer == nil && r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		r.Trailer = make(http.Header)
	}
}
