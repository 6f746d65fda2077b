package observe

import (
	"context"
	"log/slog"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

var must = testcheck.NoError

// InMemory returns an Observer with an SDK whose measurements and spans the test reads.
func InMemory(t testing.TB, reader sdkmetric.Reader, spans sdktrace.SpanExporter) *Observer {
	t.Helper()
	o := newObserver(slog.New(slog.DiscardHandler))
	o.trace(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample())), sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	o.meters = meters
	o.shutdown = append(o.shutdown, meters.Shutdown)
	must(t, o.createInstruments())
	t.Cleanup(o.Close)
	return o
}

// Tracer returns a tracer of o.
func (o *Observer) Tracer() trace.Tracer { return o.tracers.Tracer(scope) }

// AsksFor is asksFor.
var AsksFor = asksFor

// NewErrorLog returns the error handler that logs to logger.
func NewErrorLog(logger *slog.Logger) func(error) { return (&errorLog{logger: logger}).Handle }

// ShutDownBy returns an Observer that Close shuts down with functions.
func ShutDownBy(logger *slog.Logger, shutdown ...func(context.Context) error) *Observer {
	o := newObserver(logger)
	o.shutdown = shutdown
	return o
}
