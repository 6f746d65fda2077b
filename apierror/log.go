package apierror

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
)

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
