package telemetry_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/telemetry"
	"github.com/animalstore/gatehouse/ratelimit"
)

// traced serves a request inside otelhttp and Route, and returns the spans.
func traced(t *testing.T, o telemetry.RouteOptions, next http.Handler, r *http.Request) tracetest.SpanStubs {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sdktrace.AlwaysSample()))
	defer provider.Shutdown(t.Context())
	h := otelhttp.NewHandler(telemetry.Route(o)(next), "", otelhttp.WithTracerProvider(provider))
	h.ServeHTTP(httptest.NewRecorder(), r)
	return spans.GetSpans()
}

func attributes(s tracetest.SpanStub) map[string]string {
	all := make(map[string]string)
	for _, kv := range s.Attributes {
		if _, twice := all[string(kv.Key)]; !twice {
			all[string(kv.Key)] = kv.Value.String()
		}
	}
	return all
}

type contextKey struct{}

// copying is a middleware of a kind that is often seen: it gives next a copy of the
// request, so that the pattern that a mux sets is lost.
func copying(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), contextKey{}, 1)))
	})
}

func TestSpansHaveTheRoute(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/pets/{petId}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/any/", func(http.ResponseWriter, *http.Request) {})
	find := func(r *http.Request) string { _, pattern := mux.Handler(r); return pattern }
	refusing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
	for _, test := range []struct {
		name           string
		pattern        func(*http.Request) string
		handler        http.Handler
		method, target string
		span, route    string
	}{
		{"of the mux", nil, mux, "GET", "/v1/pets/7", "GET /v1/pets/{petId}", "/v1/pets/{petId}"},
		{"of a pattern without a method", nil, mux, "DELETE", "/any/where", "DELETE /any/", "/any/"},
		{"although a middleware copies the request", find, copying(mux), "GET", "/v1/pets/7", "GET /v1/pets/{petId}", "/v1/pets/{petId}"},
		{"of a refused request", find, refusing, "GET", "/v1/pets/7", "GET /v1/pets/{petId}", "/v1/pets/{petId}"},
		{"without a route", find, mux, "GET", "/v1/nothing", "GET", ""},
		{"of an unknown method", nil, mux, "BREW", "/any/where", "HTTP /any/", "/any/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			spans := traced(t, telemetry.RouteOptions{Pattern: test.pattern}, test.handler, httptest.NewRequest(test.method, test.target, nil))
			if len(spans) != 1 || spans[0].Name != test.span || attributes(spans[0])["http.route"] != test.route {
				t.Errorf("got span %q with http.route %q, want %q with %q",
					spans[0].Name, attributes(spans[0])["http.route"], test.span, test.route)
			}
		})
	}
}

func TestServerErrorsHaveAType(t *testing.T) {
	for status, want := range map[int]struct {
		errorType string
		code      codes.Code
	}{
		200: {"", codes.Unset}, 404: {"", codes.Unset}, 429: {"", codes.Unset},
		500: {"500", codes.Error}, 503: {"503", codes.Error},
	} {
		spans := traced(t, telemetry.RouteOptions{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
		}), httptest.NewRequest("GET", "/", nil))
		if got := attributes(spans[0])["error.type"]; got != want.errorType || spans[0].Status.Code != want.code {
			t.Errorf("status %d: error.type %q and span status %v, want %q and %v", status, got, spans[0].Status.Code, want.errorType, want.code)
		}
	}
}

func TestAbortedResponsesAreErrors(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sdktrace.AlwaysSample()))
	h := otelhttp.NewHandler(telemetry.Route(telemetry.RouteOptions{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	})), "", otelhttp.WithTracerProvider(provider))
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("the panic is passed on as %v, want http.ErrAbortHandler", v)
		}
		span := spans.GetSpans()[0]
		if got := attributes(span)["error.type"]; got != "aborted" || span.Status.Code != codes.Error {
			t.Errorf("error.type is %q and the status of the span %v, want aborted and Error", got, span.Status.Code)
		}
	}()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
}

// otelhttp believes the left-most X-Forwarded-For.
func TestTheClientAddressIsThatOfTheService(t *testing.T) {
	for _, test := range []struct {
		found netip.Addr
		want  string
	}{
		{netip.MustParseAddr("192.0.2.7"), "192.0.2.7"},
		{netip.Addr{}, "203.0.113.9"},
	} {
		o := telemetry.RouteOptions{ClientAddress: func(*http.Request) netip.Addr { return test.found }}
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Forwarded-For", "203.0.113.9")
		span := traced(t, o, http.NotFoundHandler(), r)[0]
		if got := attributes(span)["client.address"]; got != test.want {
			t.Errorf("client.address is %q, want %q", got, test.want)
		}
	}
}

func TestSpansHaveTheDecision(t *testing.T) {
	const token = "pet_live_secret"
	c := collect(t)
	auth := testcheck.Must(bearer.New("pets", func(context.Context, string) (apikey.Principal, error) {
		return apikey.Principal{KeyID: "key_17", Owner: "ann", Plan: free}, nil
	}, bearer.Options{}))
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	span := traced(t, telemetry.RouteOptions{}, auth.Identify(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.Decision(r, ratelimit.Caller{Subject: "owner:ann", Plan: free}, decided(free, ratelimit.Limited, 0, 0), nil)
	})), r)[0]
	got := attributes(span)
	for key, want := range map[string]string{
		"gatehouse.plan": "free", "gatehouse.result": "limited", "gatehouse.key.id": "key_17",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	for key, value := range got {
		if value == token || value == "Bearer "+token || value == "owner:ann" {
			t.Errorf("%s is %q: a span must have neither a key nor a subject", key, value)
		}
	}
}

func TestTracedDecisionsHaveASpan(t *testing.T) {
	for _, test := range []struct {
		l      answering
		status codes.Code
		result string
	}{
		{answering{d: ratelimit.Decision{Outcome: ratelimit.Limited}}, codes.Unset, "limited"},
		{answering{err: errors.New("cannot decide for owner:ann")}, codes.Error, "undecided"},
	} {
		c := collect(t)
		spans := traced(t, telemetry.RouteOptions{}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			c.Take(r.Context(), test.l, "owner:ann", free, 1)
		}), httptest.NewRequest("GET", "/", nil))
		if len(spans) != 2 {
			t.Fatalf("%d spans, want those of the request and of the decision", len(spans))
		}
		take, request := spans[0], spans[1]
		if take.Parent.SpanID() != request.SpanContext.SpanID() {
			t.Errorf("the parent of %s is not the request", take.Name)
		}
		want := attribute.String("gatehouse.result", test.result)
		if take.Status.Code != test.status || take.Status.Description != "" || take.Attributes[0] != want {
			t.Errorf("%s has status %v and %v, want %v and %v", take.Name, take.Status, take.Attributes, test.status, want)
		}
	}
}

// The instrumentation calls QUERY an unknown method.
func TestSpansNameQUERY(t *testing.T) {
	for method, want := range map[string]string{"QUERY": "QUERY", "GET": "GET", "BREW": "_OTHER"} {
		spans := traced(t, telemetry.RouteOptions{}, http.NotFoundHandler(), httptest.NewRequest(method, "/", nil))
		if got := attributes(spans[0])["http.request.method"]; got != want {
			t.Errorf("%s: http.request.method is %q, want %q", method, got, want)
		}
	}
}
