package observe_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// collector receives OTLP over HTTP, in which texts are as they are.
type collector struct {
	mu       sync.Mutex
	received map[string][]byte // by path
}

// newCollector returns a collector and its URL.
func newCollector(t *testing.T) (*collector, string) {
	t.Helper()
	c := &collector{received: make(map[string][]byte)}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	return c, s.URL
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what is missing fails the test
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received[r.URL.Path] = append(c.received[r.URL.Path], body...)
}

func TestACollectorGetsTracesAndMetrics(t *testing.T) {
	c, url := newCollector(t)
	setenv(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+url, "OTEL_SERVICE_NAME=pets-test")
	o := start(t)
	h, key := newAPI(t, o, nil)
	r := httptest.NewRequest("GET", "/v1/pets/1", nil)
	r.Header.Set("Authorization", "Bearer "+key)
	h.ServeHTTP(httptest.NewRecorder(), r)
	o.Close() // flushes

	c.mu.Lock()
	defer c.mu.Unlock()
	for path, names := range map[string][]string{
		"/v1/traces":  {"pets-test", "GET /v1/pets/{petId}", "gatehouse take", "store Pet"},
		"/v1/metrics": {"pets-test", "http.server.request.duration", "gatehouse.rate_limiting.requests", "gatehouse.engine.duration", "petstore.store.duration"},
	} {
		for _, name := range names {
			if !bytes.Contains(c.received[path], []byte(name)) {
				t.Errorf("the collector got at %s\n%q\nwant %q in it", path, c.received[path], name)
			}
		}
	}
}

func TestSamplersOfTheEnvironment(t *testing.T) {
	c, url := newCollector(t)
	setenv(t, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+url+"/v1/traces", "OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.1")
	o := start(t)
	h, _ := newAPI(t, o, nil)
	const requests = 500
	for range requests {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/openapi.json", nil))
	}
	o.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := bytes.Count(c.received["/v1/traces"], []byte("GET /openapi.json")); n < requests/25 || n > requests/5 {
		t.Errorf("%d of %d requests are traced, want about a tenth", n, requests)
	}
	if len(c.received) != 1 {
		t.Errorf("the collector got more than traces: %q", c.received)
	}
}
