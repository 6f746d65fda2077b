package telemetry

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/animalstore/gatehouse/middleware"
)

// RouteOptions are optional settings of [Route]. The zero value works.
type RouteOptions struct {
	// Pattern returns the ServeMux pattern of a request before it is served; "" if none
	// matches. With one [http.ServeMux]:
	//
	//	Pattern: func(r *http.Request) string { _, pattern := mux.Handler(r); return pattern }
	//
	// With a router of chi:
	//
	//	Pattern: func(r *http.Request) string { return router.Find(chi.NewRouteContext(), r.Method, r.URL.Path) }
	//
	// Nil: the Pattern that the request has after it was served. The mux sets it on
	// the request that it gets. All middlewares of Gatehouse copy it to the request that
	// they got, but others that call [http.Request.WithContext] usually do not.
	Pattern func(r *http.Request) string

	// ClientAddress returns the address of the client for the attribute client.address
	// of spans, such as clientip.Source.Addr; the zero Addr if it is not known. Nil:
	// Route leaves the attribute as it is. Instrumentations of others usually believe
	// the left-most X-Forwarded-For, which any client can set.
	ClientAddress func(r *http.Request) netip.Addr
}

// Route returns a middleware that completes the span and the metrics of an
// instrumentation such as otelhttp. Place it directly inside that:
//
//	route := telemetry.Route(telemetry.RouteOptions{ClientAddress: source.Addr})
//	handler := otelhttp.NewHandler(route(api), "", otelhttp.WithServerName("api.example:443"))
//
// It sets
//
//   - the Pattern of the request, from which the instrumentation takes the name of the
//     span and http.route of its metrics, also if a middleware further in copies the
//     request, or refuses it before a [http.ServeMux] has matched it;
//   - http.route and client.address of the span, and its http.request.method if that is
//     QUERY (RFC 10008): otelhttp does not know it, and names the span HTTP;
//   - error.type of the span: the status if that is 500 or more, and "aborted" if a
//     panic passes.
func Route(o RouteOptions) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return &route{o, next}
	}
}

type route struct {
	RouteOptions
	next http.Handler
}

func (rt *route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pattern := ""
	if rt.Pattern != nil {
		pattern = rt.Pattern(r)
	}
	if span := trace.SpanFromContext(r.Context()); span.IsRecording() {
		rt.trace(span, w, r, pattern)
	} else {
		rt.next.ServeHTTP(w, r)
	}
	if pattern != "" {
		r.Pattern = pattern
	}
}

// trace serves a request with a span that is recorded.
func (rt *route) trace(span trace.Span, w http.ResponseWriter, r *http.Request, pattern string) {
	if rt.ClientAddress != nil {
		if addr := rt.ClientAddress(r); addr.IsValid() {
			span.SetAttributes(attribute.String("client.address", addr.String()))
		}
	}
	if r.Method == "QUERY" {
		span.SetAttributes(attribute.String("http.request.method", r.Method))
	}
	response, aborted := middleware.TrackResponse(w), true
	defer func() {
		if pattern == "" {
			pattern = r.Pattern
		}
		// In a pattern the path begins at the first slash, after method and host.
		if i := strings.IndexByte(pattern, '/'); i >= 0 {
			span.SetAttributes(attribute.String("http.route", pattern[i:]))
		}
		switch status := response.Status(); {
		case aborted:
			span.SetAttributes(attribute.String("error.type", "aborted"))
			span.SetStatus(codes.Error, "")
		case status >= http.StatusInternalServerError:
			span.SetAttributes(attribute.String("error.type", strconv.Itoa(status)))
		}
	}()
	rt.next.ServeHTTP(response, r)
	aborted = false
}
