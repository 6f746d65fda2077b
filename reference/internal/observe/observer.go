package observe

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/animalstore/gatehouse/middleware/telemetry"
)

// An Observer has the instruments of the server and the SDK behind them. [Start] makes
// it. It is safe for concurrent use.
type Observer struct {
	// Telemetry has the instruments of the library.
	*telemetry.Telemetry

	registry *prometheus.Registry
	meters   metric.MeterProvider
	meter    metric.Meter
	tracers  trace.TracerProvider // samples everything
	sampler  trace.Tracer         // decides which requests are traced; nil: none

	// requestDuration is http.server.request.duration of the semantic conventions. otelhttp
	// has this metric too, but with the Host field among its attributes.
	requestDuration metric.Float64Histogram
	callDuration    metric.Float64Histogram // of the database

	shutdown []func(context.Context) error
	logger   *slog.Logger
}

// scope is the name of the meter and of the tracer.
const scope = "github.com/animalstore/gatehouse/reference"

// Start sets up the SDK as the environment says, for a version of the program. The logger
// gets the errors of the SDK and its exporters. An error names the variable that is wrong.
func Start(ctx context.Context, version string, logger *slog.Logger) (*Observer, error) {
	o := newObserver(logger)
	var err error
	if !disabled() {
		logErrors(o.logger)
		err = o.startSDK(ctx, version)
	}
	if err == nil {
		err = o.createInstruments()
	}
	if err != nil {
		o.Close()
		return nil, fmt.Errorf("cannot set up OpenTelemetry: %w", err)
	}
	return o, nil
}

// Nothing returns an Observer that observes nothing.
func Nothing() *Observer {
	o := newObserver(slog.New(slog.DiscardHandler))
	if err := o.createInstruments(); err != nil {
		panic(err) // the instruments of a MeterProvider that does nothing have no errors
	}
	return o
}

func newObserver(logger *slog.Logger) *Observer {
	return &Observer{
		registry: newRegistry(),
		meters:   metricnoop.NewMeterProvider(),
		tracers:  tracenoop.NewTracerProvider(),
		logger:   logger,
	}
}

func (o *Observer) createInstruments() (err error) {
	o.meter = o.meters.Meter(scope)
	if o.Telemetry, err = telemetry.New(o.meters); err != nil {
		return err
	}
	o.requestDuration, err = o.meter.Float64Histogram("http.server.request.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of HTTP server requests."),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10))
	if err != nil {
		return err
	}
	o.callDuration, err = o.meter.Float64Histogram("petstore.store.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of calls of the database"),
		metric.WithExplicitBucketBoundaries(0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10))
	return err
}

// flushTimeout bounds how long the server waits at its end for the exporters.
const flushTimeout = 3 * time.Second

// Close exports what has been collected, for at most three seconds, and ends the
// exporters. What cannot be exported is logged and lost.
func (o *Observer) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	var wg sync.WaitGroup // traces must not wait for metrics, nor metrics for traces
	for _, shutdown := range o.shutdown {
		wg.Go(func() {
			if err := shutdown(ctx); err != nil {
				o.logger.Warn("cannot export the last telemetry; check the collector and the OTEL_ variables", errorAttr(err))
			}
		})
	}
	wg.Wait()
	o.shutdown = nil
}
