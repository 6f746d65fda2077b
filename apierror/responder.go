package apierror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/animalstore/gatehouse/internal/response"
)

// Responder writes the errors of a service. The zero value and a nil *Responder
// work. A Responder is safe for concurrent use; its fields must not be changed
// once it is in use.
//
// # On the wire
//
// Every error has Content-Type, Content-Length, Cache-Control: no-store (404,
// 405, 410, 414 and 501 could be cached without it, RFC 9111 section 4.2.2),
// X-Content-Type-Options: nosniff and Vary: Accept. The response to HEAD has the
// header section of GET and no body. Fields that were set before, such as
// Allow, Retry-After, WWW-Authenticate or X-RateLimit-Limit, are kept. Fields
// that belong to the response which the error replaces are dropped:
//
//   - those that describe its content, such as Content-Range (unless the error is
//     a 416 with the length, "bytes */1234"), Content-Disposition, ETag,
//     Last-Modified, Digest and Repr-Digest, its signature (RFC 9421) and its trailers;
//   - those that say how to cache it: Age, Expires, No-Vary-Search, Edge-Control,
//     Surrogate-Control, X-Accel-Expires, and all names that end in
//     -Cache-Control (RFC 9213);
//   - X-Accel-Redirect and X-Sendfile, which make a proxy send a file instead.
//
// The envelope is the default: it is sent without Accept, on a tie, and to
// clients that accept neither form (RFC 9110 section 12.4.1 allows it). Problem
// details have the type about:blank unless the error has another: see [Problem].
//
// Errors that net/http writes before it calls any handler, for a malformed
// request line or an oversized header section, do not pass through a Responder.
//
// # In the log
//
// Causes are logged with request_id, method, route (the pattern of
// [http.ServeMux]), status, code and error. Errors of the service (5xx) and
// panics have level Error. Causes of 4xx, and responses that the client abandoned,
// have level Info. An Error without a cause is not logged. Neither header fields nor
// the request target are ever logged.
type Responder struct {
	// Logger gets the causes of errors, and panics. If nil, it is [slog.Default].
	Logger *slog.Logger

	// RequestID returns the ID of the request that ctx belongs to, or "", as
	// middleware.RequestIDFrom does. If nil, the log has no request IDs.
	RequestID func(ctx context.Context) string
}

// cancelled is for logs and metrics. The status is that of nginx.
var cancelled = New(499, "client_closed_request", "The client has cancelled this request.").Preencoded()

var internal = New(http.StatusInternalServerError, CodeInternal, "The service failed to answer this request.").Preencoded()

var errNil = errors.New("apierror: the error to answer with must not be nil")

// Respond answers r with err, in the envelope or as problem details. The client gets
// the first [*Error] in err's tree, or status 500 and code "internal" if there is
// none. If err wraps [context.Canceled] and the context of r was cancelled, its client has
// disconnected, which is not a failure of the service: the status is 499 and the code
// "client_closed_request", for logs and metrics. The only client that can read it has closed
// its side of an HTTP/1 connection, which net/http takes for a disconnection.
//
// If w comes from [Responder.Handle] or [Responder.Recover] and the response
// has begun, Respond cannot answer. It logs err and aborts the response by
// panicking with [http.ErrAbortHandler]: see Handle.
func (rs *Responder) Respond(w http.ResponseWriter, r *http.Request, err error) {
	if t, ok := w.(*response.Tracker); ok && t.Begun() {
		rs.logBegun(r, err)
		panic(http.ErrAbortHandler)
	}
	send(w, r, rs.Public(r, err))
}

// Public returns what Respond sends to answer r with err, and logs what Respond logs,
// for services that write the answer in a form of their own.
func (rs *Responder) Public(r *http.Request, err error) *Error {
	public := internal
	switch e, ok := errors.AsType[*Error](err); {
	case err == nil:
		rs.logFailure(r, public, errNil)
	case clientGone(r) && errors.Is(err, context.Canceled):
		public = cancelled
		rs.logFailure(r, public, err)
	case !ok || e == nil:
		rs.logFailure(r, public, err)
	case !e.valid():
		rs.logFailure(r, public, fmt.Errorf("apierror: an Error must have a status from 400 to 599 and a code, got %d and %q: %w", e.Status, e.Code, err))
	default:
		public = e
		if e.cause != nil || err != error(e) {
			rs.logFailure(r, public, err)
		}
	}
	return public
}

// Handle returns a handler that answers with the error which h returns, as
// [Responder.Respond] does.
//
// If h returns an error after its response has begun, the response is broken, and no
// second status can say so. Handle then logs the error and panics with
// [http.ErrAbortHandler], which makes net/http close the connection (HTTP/1.1) or
// reset the stream (HTTP/2): the client sees a failure instead of a short body that
// looks complete. If the response is good in spite of an error, h logs the error
// itself and returns nil. Tests that call the handler without a server must expect
// the panic.
//
// When h returns or panics, the temporary files of a multipart form that it parsed
// are removed. net/http removes them only if h did not panic and no middleware
// copied the request, as [net/http.Request.WithContext] does.
//
// The ResponseWriter that h is given supports [http.ResponseController],
// [http.Flusher], [http.Hijacker], [http.Pusher] and [io.ReaderFrom] as far as the
// one below does.
func (rs *Responder) Handle(h func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer response.RemoveFiles(r, r.MultipartForm)
		t := response.Track(w)
		if err := h(t, r); err != nil {
			rs.Respond(t, r, err)
		}
	})
}
