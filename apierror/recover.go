package apierror

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/animalstore/gatehouse/internal/response"
)

// maxStack bounds the stack that is logged, as net/http does.
const maxStack = 64 << 10

// Recover returns a handler that answers 500 in the envelope if next panics
// before its response has begun. Header fields set until then, such as
// X-RateLimit-Limit, are kept. If the response has begun, it is aborted by
// panicking with [http.ErrAbortHandler], for the reason given at
// [Responder.Handle]. Either way the panic is logged with its stack. A panic
// with ErrAbortHandler itself is passed on, unlogged. Like [Responder.Handle] it
// removes the temporary files of multipart forms.
//
// The log has the request's ID only if Recover is inside the middleware that
// assigns it. It has the route unless a middleware of another module between Recover
// and the [http.ServeMux] copies the request, as [http.Request.WithContext] does. A
// second Recover directly around the mux then logs the panic with the route, and the
// outer one answers for the middlewares between them.
func (rs *Responder) Recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t, form := response.Track(w), r.MultipartForm
		defer func() {
			v := recover()
			response.RemoveFiles(r, form)
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			stack := make([]byte, maxStack)
			stack = stack[:runtime.Stack(stack, false)]
			rs.log(r, slog.LevelError, "handler panicked",
				slog.Bool("aborted", t.Begun()), slog.String("panic", fmt.Sprint(v)), slog.String("stack", string(stack)))
			if t.Begun() {
				panic(http.ErrAbortHandler)
			}
			send(t, r, internal)
		}()
		next.ServeHTTP(t, r)
	})
}

// dropStale removes the fields that belong to the response which the error
// replaces: those that describe its representation or a part of it, those that
// say how to cache it, and those that have a proxy send a file. They would be
// wrong on the error, and harmful in a cache.
func dropStale(h http.Header, status int) {
	if onlyKept(h) {
		return
	}
	for name := range h {
		canonical := http.CanonicalHeaderKey(name) // net/http also sends names of another case
		switch {
		case name == "Content-Range" && hasLength(h[name], status):
		case isStale(canonical), name != canonical && slices.Contains(written, canonical):
			delete(h, name)
		}
	}
}

// written are the fields that send sets.
var written = []string{"Content-Type", "Content-Length", "Cache-Control", "X-Content-Type-Options"}

// kept are the fields of a 429, a 401 or another refusal that is sent before any handler
// runs, also with the fields of middleware.SecurityHeaders. All of them stay, or send sets
// them.
var kept = [...]string{
	"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After", "Vary", "X-Request-Id",
	"Cache-Control", "X-Content-Type-Options", "Content-Security-Policy", "Referrer-Policy", "Www-Authenticate",
	"Content-Type", "Content-Length",
}

// onlyKept reports whether h has only kept fields. Looking these up is much faster than
// iterating over h, which matters in a flood.
func onlyKept(h http.Header) bool {
	others := len(h)
	for i := 0; others > 0 && others <= len(kept)-i; i++ {
		if _, found := h[kept[i]]; found {
			others--
		}
	}
	return others == 0
}

// hasLength reports whether a Content-Range is that of a 416, which has the length of
// the representation (RFC 9110 section 15.5.17). That of a 206 has another form.
func hasLength(lines []string, status int) bool {
	return status == http.StatusRequestedRangeNotSatisfiable && len(lines) == 1 && strings.HasPrefix(lines[0], "bytes */")
}

// isStale takes a name in canonical form.
func isStale(name string) bool {
	switch name {
	case "X-Accel-Expires", "X-Accel-Redirect", "X-Sendfile":
		return true
	case "Content-Digest", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Location",
		"Content-Md5", "Content-Range", "Digest", "Etag", "Last-Modified", "Repr-Digest", "Unencoded-Digest",
		"Use-As-Dictionary",
		"Signature", "Signature-Input", // of another status and content (RFC 9421)
		"Trailer", "Transfer-Encoding",
		"Age", "Edge-Control", "Expires", "No-Vary-Search", "Surrogate-Control":
		return true
	}
	// Targeted cache control (RFC 9213): CDN-Cache-Control, and fields that content
	// delivery networks name after themselves.
	return strings.HasSuffix(name, "-Cache-Control") || strings.HasPrefix(name, http.TrailerPrefix)
}
