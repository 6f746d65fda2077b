package observe_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector receives OTLP over HTTP.
type collector struct {
	mu             sync.Mutex
	spans, metrics []string // names
	services       []string
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.URL.Path {
	case "/v1/traces":
		var sent collectortrace.ExportTraceServiceRequest
		err = proto.Unmarshal(body, &sent)
		for _, resource := range sent.ResourceSpans {
			for _, kv := range resource.Resource.Attributes {
				if kv.Key == "service.name" {
					c.services = append(c.services, kv.Value.GetStringValue())
				}
			}
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					c.spans = append(c.spans, span.Name)
				}
			}
		}
	case "/v1/metrics":
		var sent collectormetrics.ExportMetricsServiceRequest
		err = proto.Unmarshal(body, &sent)
		for _, resource := range sent.ResourceMetrics {
			for _, scope := range resource.ScopeMetrics {
				for _, m := range scope.Metrics {
					c.metrics = append(c.metrics, m.Name)
				}
			}
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func TestACollectorGetsTracesAndMetrics(t *testing.T) {
	var c collector
	s := httptest.NewServer(&c)
	defer s.Close()
	setenv(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+s.URL, "OTEL_SERVICE_NAME=pets-test")
	o := start(t)
	h, key := newAPI(t, o, nil)
	r := httptest.NewRequest("GET", "/v1/pets/1", nil)
	r.Header.Set("Authorization", "Bearer "+key)
	h.ServeHTTP(httptest.NewRecorder(), r)
	o.Close() // flushes

	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range []string{"GET /v1/pets/{petId}", "gatehouse take", "store Pet"} {
		if !slices.Contains(c.spans, name) {
			t.Errorf("the collector got the spans %q, want %q among them", c.spans, name)
		}
	}
	for _, name := range []string{"http.server.request.duration", "gatehouse.rate_limiting.requests", "gatehouse.engine.duration", "petstore.store.duration"} {
		if !slices.Contains(c.metrics, name) {
			t.Errorf("the collector got the metrics %q, want %q among them", c.metrics, name)
		}
	}
	if !slices.Contains(c.services, "pets-test") {
		t.Errorf("the spans are those of %q, want pets-test", c.services)
	}
}

func TestSamplersOfTheEnvironment(t *testing.T) {
	var c collector
	s := httptest.NewServer(&c)
	defer s.Close()
	setenv(t, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+s.URL+"/v1/traces", "OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.1")
	o := start(t)
	h, _ := newAPI(t, o, nil)
	const requests = 500
	for range requests {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/openapi.json", nil))
	}
	o.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, name := range c.spans {
		if name == "GET /openapi.json" {
			n++
		}
	}
	if n < requests/25 || n > requests/5 {
		t.Errorf("%d of %d requests are traced, want about a tenth", n, requests)
	}
	if len(c.metrics) > 0 {
		t.Errorf("the collector got metrics, but was only to get traces")
	}
}
