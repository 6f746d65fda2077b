package response

import (
	"mime/multipart"
	"net/http"
)

// RemoveFiles removes the temporary files of a multipart form that was parsed
// since r.MultipartForm was before. It is deferred by handlers after which
// net/http may not do it: net/http removes only the files of the request that it
// made itself, not of a copy, and none at all if a handler panics.
func RemoveFiles(r *http.Request, before *multipart.Form) {
	if form := r.MultipartForm; form != nil && form != before {
		_ = form.RemoveAll() // what cannot be removed is left to the system
	}
}
