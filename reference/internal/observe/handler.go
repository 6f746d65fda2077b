package observe

import (
	"context"
	"net/http"
	"net/netip"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"

	"github.com/animalstore/gatehouse/middleware/telemetry"
)

// Handler returns a handler that measures and traces each request to api. It is the
// outermost handler. The function returns the address of a client. The API writes the
// route of a request to its Pattern.
//
// A response that is aborted with [http.ErrAbortHandler] is not measured.
func (o *Observer) Handler(api http.Handler, client func(*http.Request) netip.Addr) http.Handler {
	api = o.measure(api)
	if o.sampler == nil {
		return api
	}
	route := telemetry.Route(telemetry.RouteOptions{ClientAddress: client})
	return otelhttp.NewHandler(route(api), "petstore",
		otelhttp.WithFilter(o.sampled),
		otelhttp.WithMeterProvider(metricnoop.NewMeterProvider()), // see requests
		otelhttp.WithTracerProvider(o.tracers),
		otelhttp.WithPropagators(propagation.TraceContext{}),
		// A client could otherwise turn off the trace of its request, or turn it on.
		// A proxy in front usually passes on what clients send.
		otelhttp.WithPublicEndpointFn(func(*http.Request) bool { return true }))
}

// sampled reports whether a request is to be traced. otelhttp costs several microseconds
// also for requests that are not, so it gets only those that are.
func (o *Observer) sampled(*http.Request) bool {
	_, span := o.sampler.Start(context.Background(), "petstore")
	return span.SpanContext().IsSampled()
}
