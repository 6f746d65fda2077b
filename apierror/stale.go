package apierror

import (
	"net/http"
	"strings"
)

// dropStale removes the fields that belong to the response which the error
// replaces: those that describe its representation or a part of it, those that
// say how to cache it, and those that have a proxy send a file. They would be
// wrong on the error, and harmful in a cache.
func dropStale(h http.Header, status int) {
	for name, values := range h {
		if !isStale(name) {
			continue
		}
		// A 416 tells the length of the representation in this field (RFC 9110
		// section 15.5.17). The range of a 206 has another form.
		if name == "Content-Range" && status == http.StatusRequestedRangeNotSatisfiable &&
			len(values) == 1 && strings.HasPrefix(values[0], "bytes */") {
			continue
		}
		delete(h, name)
	}
}

// isStale takes a name in canonical form.
func isStale(name string) bool {
	switch name {
	case "Content-Digest", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Location",
		"Content-Md5", "Content-Range", "Digest", "Etag", "Last-Modified", "Repr-Digest", "Use-As-Dictionary",
		"Signature", "Signature-Input", // of another status and content (RFC 9421)
		"Trailer", "Transfer-Encoding",
		"Age", "Expires", "No-Vary-Search", "Surrogate-Control", "X-Accel-Expires",
		"X-Accel-Redirect", "X-Sendfile":
		return true
	}
	// Targeted cache control (RFC 9213): CDN-Cache-Control, and fields that content
	// delivery networks name after themselves.
	return strings.HasSuffix(name, "-Cache-Control")
}
