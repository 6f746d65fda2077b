package middleware

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/internal/response"
)

// AccessLog returns a middleware that writes one line of level Info for each request:
//
//	msg=request request_id=0af3... method=GET route="GET /v1/pets/{petId}" status=200 bytes=27 duration_ms=0.412
//
// The route is the pattern of [http.ServeMux], "" if the request did not reach one. It
// is also "" if another package's middleware between AccessLog and the mux has copied the
// request, as authentication does with [http.Request.WithContext]. A handler further in
// can then set it: SetLogAttrs(r.Context(), slog.String("route", r.Pattern)). In chi, use
// gatehousechi.Route.
//
// Methods other than PATCH, QUERY and those of RFC 9110 are logged as "other". The status is 0
// if the handler panicked before the response began. Bytes counts the body alone.
//
// After these come the attributes that other parts of the service have set with [SetLogAttrs].
// The line ends with aborted=true if a panic passed AccessLog, and with abandoned=true if the
// client disconnected before the handler returned. The status of such a request is 499 if the
// handler wrote nothing, or passed the error of the context to an [apierror.Responder]. Any
// other status is what the handler sent.
//
// Neither header fields nor the request target are logged, since both can contain
// secrets. If logger is nil, it is [slog.Default]. Place AccessLog outside
// [apierror.Responder.Recover], so that the line has the status which that sends, and
// beside [RequestID] in either order.
func AccessLog(logger *slog.Logger) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l := logger
			if l == nil {
				l = slog.Default()
			}
			if !l.Enabled(r.Context(), slog.LevelInfo) {
				next.ServeHTTP(w, r)
				return
			}
			inner, ctx := withRequestContext(r)
			if ctx.line == nil {
				ctx.line = new(logLine)
			}
			t, begin, aborted := response.Track(w), time.Now(), true
			defer func() {
				writeLine(l, r, ctx, t, begin, aborted)
			}()
			ctx.serve(next, t, r, inner)
			aborted = false
		})
	}
}

func writeLine(l *slog.Logger, r *http.Request, ctx *requestContext, t *response.Tracker, begin time.Time, aborted bool) {
	end := time.Now()
	status := t.Status()
	abandoned := errors.Is(r.Context().Err(), context.Canceled) // by net/http, when the client disconnects
	switch {
	case status != 0 || aborted:
	case abandoned:
		status = 499
	default:
		status = http.StatusOK // net/http sends it for a handler that wrote nothing
	}
	written := t.Bytes()
	if r.Method == http.MethodHead {
		written = 0 // net/http sends no body
	}
	var buf [16]slog.Attr
	attrs := buf[:0]
	if id := ctx.id[0]; id != "" {
		attrs = append(attrs, slog.String("request_id", id))
	}
	attrs = append(attrs,
		slog.String("method", knownMethod(r.Method)),
		slog.String("route", r.Pattern),
		slog.Int("status", status),
		slog.Int64("bytes", written),
		// A number can be summed.
		slog.Float64("duration_ms", float64(end.Sub(begin).Microseconds())/1000),
	)
	attrs = ctx.line.appendTo(attrs)
	if aborted {
		attrs = append(attrs, slog.Bool("aborted", true))
	}
	if abandoned {
		attrs = append(attrs, slog.Bool("abandoned", true))
	}
	// Logger.LogAttrs would look up the line of this call, which says nothing.
	record := slog.NewRecord(end, slog.LevelInfo, "request", 0)
	record.AddAttrs(attrs...)
	_ = l.Handler().Handle(ctx, record) // as Logger does: there is nowhere to report it
}

// knownMethod keeps the names that clients invent out of the log.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace, "QUERY": // RFC 10008
		return method
	default:
		return "other"
	}
}

// SetLogAttrs sets attributes of the line that [AccessLog] writes for the request ctx
// belongs to. An attribute replaces one of the same key, "route" included: a service
// that knows the route of requests that never reach its ServeMux sets that. Without
// AccessLog it does nothing. It is safe for concurrent use.
//
// The outcome of a rate limit, for example:
//
//	Observe: func(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
//		middleware.SetLogAttrs(r.Context(), slog.String("outcome", d.Outcome.String()))
//	},
func SetLogAttrs(ctx context.Context, attrs ...slog.Attr) {
	if c := requestContextOf(ctx); c != nil && c.line != nil {
		c.line.set(attrs)
	}
}

// logLine holds the attributes that SetLogAttrs has set.
type logLine struct {
	mu    sync.Mutex
	attrs []slog.Attr
	buf   [6]slog.Attr // attrs begins here, so that a line costs one allocation
}

func (l *logLine) set(attrs []slog.Attr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.attrs == nil {
		l.attrs = l.buf[:0]
	}
	for _, a := range attrs {
		l.attrs = setAttr(l.attrs, a)
	}
}

func (l *logLine) appendTo(attrs []slog.Attr) []slog.Attr {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.attrs {
		attrs = setAttr(attrs, a)
	}
	return attrs
}

// setAttr appends a, or puts it in the place of an attribute of the same key.
func setAttr(attrs []slog.Attr, a slog.Attr) []slog.Attr {
	if i := slices.IndexFunc(attrs, func(b slog.Attr) bool { return b.Key == a.Key }); i >= 0 {
		attrs[i] = a
		return attrs
	}
	return append(attrs, a)
}
