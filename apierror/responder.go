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
type Responder struct {
	// Logger gets the causes of errors, and panics. If nil, it is [slog.Default].
	Logger *slog.Logger

	// RequestID returns the ID of the request that ctx belongs to, or "". If
	// nil, the log has no request IDs.
	RequestID func(ctx context.Context) string
}

var internal = New(http.StatusInternalServerError, CodeInternal, "The service failed to answer this request.").Preencoded()

// Respond answers r with err, in the envelope or as problem details. The first
// [*Error] in err's tree is what the client gets; without one it gets
// status 500 and code "internal". Fields already set on w.Header() are kept,
// except for those that describe the response which the error replaces.
//
// If w comes from [Responder.Handle] or [Responder.Recover] and the response
// has begun, Respond cannot answer. It logs err and aborts the response by
// panicking with [http.ErrAbortHandler]: see Handle.
func (rs *Responder) Respond(w http.ResponseWriter, r *http.Request, err error) {
	if t, ok := w.(*response.Tracker); ok && t.Begun() {
		rs.logBegun(r, err)
		panic(http.ErrAbortHandler)
	}
	public := internal
	switch e, ok := errors.AsType[*Error](err); {
	case !ok || e == nil:
		rs.logFailure(r, public, err)
	case !e.valid():
		rs.logFailure(r, public, fmt.Errorf("apierror: Error with status %d and code %q cannot be sent: %w", e.Status, e.Code, err))
	default:
		public = e
		if e.cause != nil || err != error(e) {
			rs.logFailure(r, public, err)
		}
	}
	send(w, r, public)
}

// Handle returns a handler that answers with the error which h returns, as
// [Responder.Respond] does.
//
// A handler that has begun its response and then returns an error has a response
// that is broken, and there is no second status to say so. Handle logs the error
// and panics with [http.ErrAbortHandler], which net/http takes as the order to
// close the connection (HTTP/1.1) or reset the stream (HTTP/2): the client sees
// a failure and not a short body that looks whole. A handler whose response is
// good in spite of an error logs it and returns nil. Tests that call the handler
// without a server must expect the panic.
//
// When h returns or panics, the temporary files of a multipart form that it parsed
// are removed. net/http removes them only if h did not panic and nothing between
// net/http and Handle copied the request, as [net/http.Request.WithContext] does.
//
// The ResponseWriter that h is given supports [http.ResponseController],
// [http.Flusher], [http.Hijacker] and [io.ReaderFrom] as far as the one below
// does.
func (rs *Responder) Handle(h func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer response.RemoveFiles(r, r.MultipartForm)
		t := response.Track(w)
		if err := h(t, r); err != nil {
			rs.Respond(t, r, err)
		}
	})
}
