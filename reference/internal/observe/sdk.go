package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// newRegistry returns a registry with the metrics of the Go runtime and of the process.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// startSDK makes the providers.
func (o *Observer) startSDK(ctx context.Context, version string) error {
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithService(),
		resource.WithAttributes(attribute.String("service.name", "petstore"), attribute.String("service.version", version)),
		resource.WithFromEnv()) // last, because the last value of an attribute counts
	if err != nil {
		return fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if err := o.startTraces(ctx, res); err != nil {
		return err
	}
	return o.startMetrics(ctx, res)
}

func (o *Observer) startTraces(ctx context.Context, res *resource.Resource) error {
	if !asksFor("TRACES") {
		return nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return fmt.Errorf("OTEL_TRACES_EXPORTER or OTEL_EXPORTER_OTLP_PROTOCOL: %w", err)
	}
	o.trace(sdktrace.NewTracerProvider(), // with the sampler of the environment
		sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithBatcher(exporter), sdktrace.WithSampler(sdktrace.AlwaysSample())))
	return nil
}

// trace traces the requests that a provider would sample with another one, which samples
// everything.
func (o *Observer) trace(sampler, tracers *sdktrace.TracerProvider) {
	o.sampler, o.tracers = sampler.Tracer(scope), tracers
	o.shutdown = append(o.shutdown, tracers.Shutdown)
}

func (o *Observer) startMetrics(ctx context.Context, res *resource.Resource) error {
	page, err := promexporter.New(promexporter.WithRegisterer(o.registry), promexporter.WithoutScopeInfo())
	if err != nil {
		return err
	}
	options := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithReader(page)}
	if asksFor("METRICS") {
		reader, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return fmt.Errorf("OTEL_METRICS_EXPORTER or OTEL_EXPORTER_OTLP_PROTOCOL: %w", err)
		}
		options = append(options, sdkmetric.WithReader(reader))
	}
	if o.sampler == nil {
		options = append(options, sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter))
	}
	provider := sdkmetric.NewMeterProvider(options...)
	o.meters = provider
	o.shutdown = append(o.shutdown, provider.Shutdown)
	return nil
}

// disabled reports whether OTEL_SDK_DISABLED turns the SDK off. Go's does not read it.
func disabled() bool { return strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") }

// asksFor reports whether the environment asks to export a signal, TRACES or METRICS.
// By the specification OTLP to localhost would be the default; a server that was not
// asked connects to nothing. The exporter prometheus would listen on a port of its
// own, and /metrics has the same.
func asksFor(signal string) bool {
	switch os.Getenv("OTEL_" + signal + "_EXPORTER") {
	case "none", "prometheus":
		return false
	case "":
		return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
	}
	return true
}

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
