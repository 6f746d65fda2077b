package observe

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"

	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/telemetry"
)

// measure measures requests under the route that they have after they were served. A
// response that is aborted with [http.ErrAbortHandler] is not measured.
func (o *Observer) measure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response, begin := middleware.TrackResponse(w), time.Now()
		next.ServeHTTP(response, r)
		took := time.Since(begin).Seconds()
		status := response.Status()
		switch {
		case status != 0:
		case errors.Is(r.Context().Err(), context.Canceled):
			status = 499 // cancelled by its client
		default:
			status = http.StatusOK // net/http sends it for a handler that wrote nothing
		}
		attrs := []attribute.KeyValue{
			attribute.String("http.request.method", knownMethod(r.Method)),
			attribute.Int("http.response.status_code", status),
		}
		if r.Pattern != "" { // a pattern of the API matched
			attrs = append(attrs, attribute.String("http.route", r.Pattern))
		}
		o.requestDuration.Record(r.Context(), took, metric.WithAttributeSet(attribute.NewSet(attrs...)))
	})
}

// knownMethod replaces methods that clients invent.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace, "QUERY": // RFC 10008
		return method
	}
	return "_OTHER"
}

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
		otelhttp.WithMeterProvider(metricnoop.NewMeterProvider()), // see requestDuration
		otelhttp.WithTracerProvider(o.tracers),
		otelhttp.WithPropagators(propagation.TraceContext{}),
		// A client could otherwise turn off the trace of its request, or turn it on.
		// A proxy in front usually passes on what clients send.
		otelhttp.WithPublicEndpointFn(func(*http.Request) bool { return true }))
}

// sampled reports whether a request is to be traced. otelhttp gets only those requests, because
// it costs several microseconds even for the others.
func (o *Observer) sampled(*http.Request) bool {
	_, span := o.sampler.Start(context.Background(), "petstore")
	return span.SpanContext().IsSampled()
}
