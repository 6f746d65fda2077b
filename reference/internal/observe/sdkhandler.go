package observe

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
)

// An sdkHandler passes on the lines of the SDK without the values of variables that they
// quote: OTEL_EXPORTER_OTLP_HEADERS usually has a password, and a URL can have one.
type sdkHandler struct{ next slog.Handler }

func (h sdkHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h sdkHandler) Handle(ctx context.Context, r slog.Record) error {
	safe := slog.NewRecord(r.Time, r.Level, "OpenTelemetry: "+r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		safe.AddAttrs(withoutValue(a))
		return true
	})
	return h.next.Handle(ctx, safe)
}

func (h sdkHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	safe := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		safe[i] = withoutValue(a)
	}
	return sdkHandler{h.next.WithAttrs(safe)}
}

func (h sdkHandler) WithGroup(name string) slog.Handler { return sdkHandler{h.next.WithGroup(name)} }

// withoutValue returns an attribute of the SDK without the value of a variable. The names
// are those that the SDK and its exporters use.
func withoutValue(a slog.Attr) slog.Attr {
	switch a.Key {
	case "input", "value", "url", "key":
		return slog.String(a.Key, "[not logged]")
	}
	err, ok := a.Value.Any().(error)
	if !ok {
		return a
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the text of e has the URL
	}
	return errorAttr(err)
}
