package telemetry

import (
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/animalstore/gatehouse/middleware"
)

// Route is a middleware that completes the span and the metrics of an instrumentation
// such as otelhttp. Place it directly inside of that:
//
//	otelhttp.NewHandler(t.Route(api), "")
//
// It sets
//
//   - the Pattern of the request, from which the instrumentation takes the name of the
//     span and http.route of its metrics, also if a middleware further in copies the
//     request, or refuses it before a [http.ServeMux] has matched it;
//   - http.route and client.address of the span;
//   - error.type of the span to the status if that is 500 or more.
//
// See [Options] for pattern and address. On a nil Telemetry it returns next.
func (t *Telemetry) Route(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pattern := ""
		if t.options.Pattern != nil {
			pattern = t.options.Pattern(r)
		}
		span := trace.SpanFromContext(r.Context())
		if !span.IsRecording() {
			next.ServeHTTP(w, r)
			if pattern != "" {
				r.Pattern = pattern
			}
			return
		}
		if t.options.ClientAddress != nil {
			if addr := t.options.ClientAddress(r); addr.IsValid() {
				span.SetAttributes(attribute.String("client.address", addr.String()))
			}
		}
		response := middleware.TrackResponse(w)
		defer func() { // also for a response that is aborted
			if pattern != "" {
				r.Pattern = pattern
			}
			setResponse(span, r.Pattern, response.Status())
		}()
		next.ServeHTTP(response, r)
	})
}

// setResponse sets what is known once the request is served.
func setResponse(span trace.Span, pattern string, status int) {
	// In a pattern the path begins at the first slash, after method and host.
	if i := strings.IndexByte(pattern, '/'); i >= 0 {
		span.SetAttributes(attribute.String("http.route", pattern[i:]))
	}
	if status >= http.StatusInternalServerError {
		span.SetAttributes(attribute.String("error.type", strconv.Itoa(status)))
	}
}
