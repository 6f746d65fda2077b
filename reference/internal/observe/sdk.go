package observe

import (
	"context"
	"fmt"
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

// asksFor reports whether the environment asks to export a signal, TRACES or METRICS. By
// the specification, OTLP to localhost would be the default, but a server that was not
// asked to export connects to nothing. The exporter prometheus would listen on another
// port for what /metrics has.
func asksFor(signal string) bool {
	switch os.Getenv("OTEL_" + signal + "_EXPORTER") {
	case "none", "prometheus":
		return false
	case "":
		return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
	}
	return true
}
