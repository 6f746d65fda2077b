package observe

import (
	"context"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/animalstore/gatehouse/reference/internal/logging"
)

// errorLog writes errors of the SDK to the log, at most one in a minute: while a collector
// cannot be reached there is one for each batch.
type errorLog struct {
	logger *slog.Logger
	limit  logging.Minutely
}

// Handle is for [otel.SetErrorHandler].
func (l *errorLog) Handle(err error) {
	if dropped, ok := l.limit.Pass(); ok {
		l.logger.Warn("OpenTelemetry failed; check the collector and the OTEL_ variables", errorAttr(err), slog.Int("dropped", dropped))
	}
}

// maxErrorText is how many bytes of an error of the SDK are logged.
const maxErrorText = 1000

// errorAttr returns the attribute for an error of the SDK or an exporter, shortened: its text
// can contain the body of a response, up to 4 MiB, which is more than the buffer of the log
// holds.
func errorAttr(err error) slog.Attr {
	text := err.Error()
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return slog.String("error", text)
}

// logErrors sends the errors of the SDK to the log instead of standard error. The SDK
// has one handler for the process.
func logErrors(logger *slog.Logger) {
	otel.SetErrorHandler(&errorLog{logger: logger})
	otel.SetLogger(logr.FromSlogHandler(sdkHandler{logger.Handler()}))
}

// LogHandler returns a handler that adds trace_id and span_id to the lines of requests
// whose traces are exported. Without traces it returns h.
func (o *Observer) LogHandler(h slog.Handler) slog.Handler {
	if o.sampler == nil {
		return h
	}
	return logHandler{h}
}

type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }

// An sdkHandler passes on the lines of the SDK without their attributes, which quote variables:
// OTEL_EXPORTER_OTLP_HEADERS usually has a password, and a URL can have one.
type sdkHandler struct{ slog.Handler }

func (h sdkHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.Handler.Handle(ctx, slog.NewRecord(r.Time, r.Level, "OpenTelemetry: "+r.Message, r.PC))
}

func (h sdkHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h sdkHandler) WithGroup(string) slog.Handler { return h }
