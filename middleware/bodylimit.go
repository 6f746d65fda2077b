package middleware

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/response"
)

// BodyLimit returns a middleware that refuses request bodies longer than limit
// bytes with 413 (RFC 9110 section 15.5.14). A negative limit counts as 0, which
// refuses every body. Around a whole service it answers before the
// path is matched; around one handler, after 404 and 405.
//
// If Content-Length exceeds the limit, the request is answered before its body is read,
// and a client that waits with Expect: 100-continue need not send the body. From any
// other body, Read returns the bytes up to the limit and then an error. The error wraps
// an [*apierror.Error] of status 413, which a handler passes to
// [apierror.Responder.Respond], and an [*http.MaxBytesError].
//
// On HTTP/1 the response also has Connection: close, since the rest of the body would have to
// be read otherwise. It is set when the header is sent, and not in a Read: another goroutine
// may read the body, as in a reverse proxy. ([http.MaxBytesReader] sets it in a Read, and
// cannot close the connection if a middleware has wrapped the ResponseWriter.) HTTP/2 ends
// only the stream.
func BodyLimit(limit int64, rs *apierror.Responder) Middleware {
	limit = max(limit, 0)
	declared := apierror.New(http.StatusRequestEntityTooLarge, "body_too_large",
		fmt.Sprintf("The request body is larger than %d bytes.", limit))
	declared.Args = map[string]any{"limit": limit}
	exceeded := declared.Wrap(&http.MaxBytesError{Limit: limit})

	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.ContentLength > limit:
				if r.ProtoMajor == 1 { // on HTTP/2 it would end all other requests of the connection
					w.Header()["Connection"] = []string{"close"}
				}
				rs.Respond(w, r, declared)
			case r.Body == nil || r.Body == http.NoBody:
				next.ServeHTTP(w, r)
			default:
				// A handler must not modify its request (http.Handler), hence the copy.
				limited := &limitedRequest{Request: *r}
				limited.body.ReadCloser, limited.body.left, limited.body.exceeded = r.Body, limit, exceeded
				limited.Request.Body = &limited.body
				if r.ProtoMajor == 1 {
					t := response.Edit(w, &limited.body)
					defer t.Finish() // also after a panic, which an outer handler may answer
					w = t
				}
				response.ServeCopy(next, w, r, &limited.Request)
			}
		})
	}
}

// limitedRequest is one allocation for the request and its body.
type limitedRequest struct {
	http.Request
	body limitedBody
}

// limitedBody is a request body that can be read up to a limit.
type limitedBody struct {
	io.ReadCloser
	left     int64 // bytes that may still be read
	err      error // returned by every further Read
	exceeded error // set as err at the limit
	over     atomic.Bool
}

// EditHeader makes net/http close the connection after the response.
func (b *limitedBody) EditHeader(h http.Header) {
	if b.over.Load() {
		h["Connection"] = []string{"close"}
	}
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	// One byte more than is left is requested, to distinguish a body that ends at the
	// limit from a longer one.
	if int64(len(p))-1 > b.left {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) > b.left {
		n, err = int(b.left), b.exceeded
		b.over.Store(true)
	}
	b.left -= int64(n)
	b.err = err
	return n, err
}

// TargetLimit returns a middleware that answers 414 (RFC 9110 section 15.5.15) if the
// target of a request, path and query as they were sent, is longer than limit bytes.
// RFC 9112 section 3 recommends to support request lines of at least 8000 bytes.
//
// net/http never answers 414 itself: it counts the request line among the header
// fields, and answers 431 without calling a handler. Set [http.Server.MaxHeaderBytes]
// well above limit, or clients get 431 instead of 414.
func TargetLimit(limit int, rs *apierror.Responder) Middleware {
	tooLong := apierror.New(http.StatusRequestURITooLong, "uri_too_long",
		fmt.Sprintf("The request target is longer than %d bytes.", limit))
	tooLong.Args = map[string]any{"limit": limit}

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
