package middleware

import (
	"fmt"
	"io"
	"net/http"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/response"
)

// BodyLimit returns a middleware that refuses request bodies longer than limit
// bytes with 413 (RFC 9110 section 15.5.14). A negative limit counts as 0, which
// refuses every body. Around a whole service it answers before the path is looked
// at; around one handler, after 404 and 405.
//
// A request whose Content-Length says so is answered at once, before anything is
// read, and a client that waits with Expect: 100-continue then need not send its
// body. From any other body, Read returns the bytes up to the limit and then an
// error that holds both an [*apierror.Error] of status 413, so that a handler
// only has to hand it to [apierror.Responder.Respond], and an
// [*http.MaxBytesError].
//
// On HTTP/1 the response also says Connection: close, since what the client
// still sends would have to be read. It is set in the Read that passes the limit:
// like [http.MaxBytesReader], that must not run while another goroutine uses the
// header of the response. (MaxBytesReader itself cannot close the connection when
// any other middleware has wrapped the ResponseWriter.) HTTP/2 ends the one
// stream by itself.
func BodyLimit(limit int64, rs *apierror.Responder) Middleware {
	limit = max(limit, 0)
	declared := apierror.New(http.StatusRequestEntityTooLarge, apierror.CodeBodyTooLarge,
		fmt.Sprintf("The request body is longer than %d bytes.", limit))
	exceeded := declared.Wrap(&http.MaxBytesError{Limit: limit})

	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.ContentLength > limit:
				closeConnection(w, r)
				rs.Respond(w, r, declared)
			case r.Body == nil || r.Body == http.NoBody:
				next.ServeHTTP(w, r)
			default:
				// A handler must not modify its request (http.Handler), hence the copy.
				limited := &limitedRequest{Request: *r}
				limited.body = limitedBody{ReadCloser: r.Body, left: limit, exceeded: exceeded, w: w, r: r}
				limited.Request.Body = &limited.body
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
	err      error // what every further Read returns
	exceeded error // what err becomes at the limit
	w        http.ResponseWriter
	r        *http.Request
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	// Asking for one byte more than is left tells a body that ends at the limit
	// from one that goes on.
	if int64(len(p))-1 > b.left {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) > b.left {
		n, err = int(b.left), b.exceeded
		closeConnection(b.w, b.r)
	}
	b.left -= int64(n)
	b.err = err
	return n, err
}

// closeConnection has the connection closed after the response. On HTTP/2 other
// requests share it, and net/http would take the field as an order to end them
// all.
func closeConnection(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		w.Header()["Connection"] = []string{"close"}
	}
}
