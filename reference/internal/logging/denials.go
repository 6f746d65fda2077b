package logging

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
)

// requestLine is the message of the lines of [middleware.AccessLog].
const requestLine = "request"

// A sampler passes on one in a number of the lines about requests that went well, and
// all other lines.
type sampler struct {
	slog.Handler
	sample *atomic.Int64 // one in so many
	seen   *atomic.Int64 // lines that may be left out
}

// Handle implements [slog.Handler].
func (s sampler) Handle(ctx context.Context, r slog.Record) error {
	if n := s.sample.Load(); n > 1 && wentWell(r) {
		if s.seen.Add(1)%n != 1 {
			return nil
		}
		r = r.Clone()
		r.AddAttrs(slog.Int64("sample", n))
	}
	return s.Handler.Handle(ctx, r)
}

// wentWell reports whether r is the line of a request that was answered as a whole with
// a status below 400.
func wentWell(r slog.Record) bool {
	if r.Message != requestLine {
		return false
	}
	well := false
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "status":
			well = a.Value.Kind() == slog.KindInt64 && a.Value.Int64() < http.StatusBadRequest
		case "aborted":
			well = false
		}
		return true
	})
	return well
}

// WithAttrs implements [slog.Handler].
func (s sampler) WithAttrs(attrs []slog.Attr) slog.Handler {
	s.Handler = s.Handler.WithAttrs(attrs)
	return s
}

// WithGroup implements [slog.Handler].
func (s sampler) WithGroup(name string) slog.Handler {
	s.Handler = s.Handler.WithGroup(name)
	return s
}
