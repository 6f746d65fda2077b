package apierror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"

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
// details have the type about:blank unless the error has another: see [Error].
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

	// Translate returns the message of e for the client of r, such as in the language of its
	// Accept-Language, made of e.Code, e.Args, e.Details and e.RetryAfter. If it returns "", or is nil, the
	// client gets the status of e. Adapters of RPC frameworks call it too.
	Translate func(r *http.Request, e *Error) string

	// Write writes the response to r in a form of the service's own: Content-Type, status and
	// body. The header has the fields of every error, described above, without Content-Type,
	// Content-Length and Vary. e has the translated message, and is shared: Write and Translate
	// must not change it. If Write writes nothing, the client gets the envelope or problem
	// details, and so it does if Write is nil. Both must be safe for concurrent use.
	Write func(w http.ResponseWriter, r *http.Request, e *Error)
}

// cancelled is for logs and metrics. nginx uses the same status.
var cancelled = New(499, "client_closed_request", "The client has cancelled this request.").Preencoded()

var internal = New(http.StatusInternalServerError, "internal", "The service failed to answer this request.").Preencoded()

var errNil = errors.New("apierror: the error to answer with must not be nil")

// Respond answers r with err, in the envelope or as problem details. The client gets the first
// [*Error] in err's tree, or status 500 and code "internal" if there is none. If err wraps
// [context.Canceled] and the context of r was cancelled, its client has disconnected, which is
// not a failure of the service. The status is then 499 and the code "client_closed_request",
// for logs and metrics. The only client that can read it has closed its side of an HTTP/1
// connection, which net/http takes for a disconnection.
//
// If w comes from [Responder.Handle] or [Responder.Recover] and the response
// has begun, Respond cannot answer. It logs err and aborts the response by
// panicking with [http.ErrAbortHandler]: see Handle.
func (rs *Responder) Respond(w http.ResponseWriter, r *http.Request, err error) {
	if t, ok := w.(*response.Tracker); ok && t.Begun() {
		rs.logBegun(r, err)
		panic(http.ErrAbortHandler)
	}
	rs.send(w, r, rs.Public(r, err))
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
	return rs.translated(r, public)
}

// translated returns e with the message of Translate.
func (rs *Responder) translated(r *http.Request, e *Error) *Error {
	if rs == nil || rs.Translate == nil {
		return e
	}
	message := rs.Translate(r, e)
	if message == "" {
		return e
	}
	c := *e
	c.Message, c.preencoded = message, nil
	return &c
}

// Handle returns a handler that answers with the error which h returns, as
// [Responder.Respond] does.
//
// If h returns an error after its response has begun, the response is broken, and no second
// status can say so. Handle then logs the error and panics with [http.ErrAbortHandler], which
// makes net/http close the connection (HTTP/1.1) or reset the stream (HTTP/2). So the client
// sees a failure instead of a short body that looks complete. If the response is good in spite
// of an error, h logs the error itself and returns nil. Tests that call the handler without a
// server must expect the panic.
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
			rs.send(t, r, rs.translated(r, internal))
		}()
		next.ServeHTTP(t, r)
	})
}

// logFailure logs err, for which the client gets public.
func (rs *Responder) logFailure(r *http.Request, public *Error, err error) {
	level := slog.LevelInfo
	if public.Status >= 500 {
		level = slog.LevelError
	}
	rs.log(r, level, "request failed",
		slog.Int("status", public.Status), slog.String("code", string(public.Code)), slog.Any("error", err))
}

// logBegun logs err, which came too late to be sent to the client.
func (rs *Responder) logBegun(r *http.Request, err error) {
	// net/http cancels the context when a write to the connection fails, and
	// what the handler returns is then that failure or a consequence of it.
	if clientGone(r) {
		rs.log(r, slog.LevelInfo, "response abandoned by its client", slog.Any("error", err))
		return
	}
	rs.log(r, slog.LevelError, "request failed after its response had begun; response aborted", slog.Any("error", err))
}

// log adds what identifies the request. The target is left out since query
// strings carry secrets, and so are all header fields: one is Authorization.
func (rs *Responder) log(r *http.Request, level slog.Level, message string, attrs ...slog.Attr) {
	ctx, logger := r.Context(), slog.Default()
	if rs != nil && rs.Logger != nil {
		logger = rs.Logger
	}
	all := make([]slog.Attr, 0, 3+len(attrs))
	if rs != nil && rs.RequestID != nil {
		if id := rs.RequestID(ctx); id != "" {
			all = append(all, slog.String("request_id", id))
		}
	}
	all = append(all, slog.String("method", r.Method), slog.String("route", r.Pattern))
	logger.LogAttrs(ctx, level, message, append(all, attrs...)...)
}

// clientGone reports whether the request's context was cancelled, as net/http
// does when the connection or the HTTP/2 stream ends. A deadline is not that:
// the server sets it.
func clientGone(r *http.Request) bool {
	return errors.Is(r.Context().Err(), context.Canceled)
}
