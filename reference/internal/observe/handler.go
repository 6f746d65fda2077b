package observe

import (
	"net/http"
	"net/netip"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"

	"github.com/animalstore/gatehouse/middleware/telemetry"
)

// Handler returns a handler that measures and traces each request to api. It is the
// outermost handler. The function returns the address of a client.
//
// A response that is aborted with [http.ErrAbortHandler] is not measured.
func (o *Observer) Handler(api http.Handler, client func(*http.Request) netip.Addr) http.Handler {
	options := []otelhttp.Option{
		otelhttp.WithMeterProvider(o.meters),
		otelhttp.WithTracerProvider(o.tracers),
		otelhttp.WithPropagators(propagation.NewCompositeTextMapPropagator()), // none
	}
	if o.tracing {
		options = append(options,
			otelhttp.WithPropagators(propagation.TraceContext{}),
			// A client could otherwise turn off the trace of its request, or turn it on.
			// A proxy in front usually passes on what clients send.
			otelhttp.WithPublicEndpointFn(func(*http.Request) bool { return true }))
	}
	route := telemetry.Route(telemetry.RouteOptions{ClientAddress: client})
	return otelhttp.NewMiddleware("petstore", options...)(route(api))
}
