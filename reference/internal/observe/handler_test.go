package observe_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/httpserver"
	"github.com/animalstore/gatehouse/reference/internal/observe"
)

func TestSpansOfARequest(t *testing.T) {
	sdk := newSDK(t)
	h, key := newAPI(t, sdk.Observer, nil)
	span, _ := sdk.request(t, h, "GET", "http://pets.example:8080/v1/pets/1?secret=x", "Authorization", "Bearer "+key,
		"User-Agent", "test", "X-Forwarded-For", "203.0.113.9, 192.0.2.7")
	got := attributes(span)
	for name, want := range map[string]string{
		"http.route": "/v1/pets/{petId}", "url.path": "/v1/pets/1", "network.peer.address": "10.0.0.1",
		"client.address":   "192.0.2.7", // the right-most that is not a trusted proxy; clients choose the left-most
		"gatehouse.result": "allowed", "gatehouse.plan": "enterprise",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if !strings.HasPrefix(got["gatehouse.key.id"], "key_") {
		t.Errorf("gatehouse.key.id is %q, want the ID of the key", got["gatehouse.key.id"])
	}
	children := make(map[string]string)
	for _, child := range sdk.spans.GetSpans() {
		if child.Parent.SpanID() == span.SpanContext.SpanID() {
			children[child.Name] = child.Status.Code.String()
		}
		for name, value := range attributes(child) {
			if strings.Contains(value, key) || strings.Contains(value, "secret") || strings.Contains(value, "roomy") {
				t.Errorf("%s of %q is %q: no span may have a key, a query or an owner", name, child.Name, value)
			}
		}
	}
	want := map[string]string{"gatehouse take": "Unset", "store KeyByDigest": "Unset", "store Pet": "Unset"}
	if diff := cmp.Diff(want, children); diff != "" {
		t.Errorf("spans of the request by status (-want +got):\n%s", diff)
	}
}

// A client must neither turn off the trace of its request nor turn it on, and an invalid
// field is no error.
func TestClientsDecideNothingAboutTraces(t *testing.T) {
	sdk := newSDK(t)
	h, _ := newAPI(t, sdk.Observer, nil)
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for field, linked := range map[string]bool{
		"":                                   false,
		"nonsense":                           false,
		"00-" + trace + "-" + parent + "-01": true,
		"00-" + trace + "-" + parent + "-00": true, // not sampled by the client
		"00-" + trace + "-" + parent + "-01-extra": false,
	} {
		span, w := sdk.request(t, h, "GET", "/openapi.json", "Traceparent", field)
		if w.Code != 200 {
			t.Errorf("traceparent %q: status %d, want 200", field, w.Code)
		}
		if span.SpanContext.TraceID().String() == trace || span.Parent.IsValid() {
			t.Errorf("traceparent %q: the request continues the trace of the client, want a trace of its own", field)
		}
		if got := len(span.Links) == 1 && span.Links[0].SpanContext.TraceID().String() == trace; got != linked {
			t.Errorf("traceparent %q: linked is %t, want %t", field, got, linked)
		}
	}
}

func TestMeasurementsOfRequests(t *testing.T) {
	sdk := newSDK(t)
	h, key := newAPI(t, sdk.Observer, nil)
	for _, target := range []string{"/v1/pets", "/v1/pets/1", "/v1/pets/666", "/v1/nothing"} {
		sdk.request(t, h, "GET", "http://any-host.example"+target, "Authorization", "Bearer "+key)
	}
	for _, method := range []string{"BREW", "QUERY"} {
		sdk.request(t, h, method, "/v1/pets", "Authorization", "Bearer "+key)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	silent := sdk.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil)
	for _, ctx := range []context.Context{gone, t.Context()} {
		silent.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "PUT", "/", nil))
	}
	metrics := sdk.metrics(t)
	for name := range metrics {
		if strings.HasPrefix(name, "http.") && name != "http.server.request.duration" {
			t.Errorf("%s is measured, want only the duration", name)
		}
	}
	m := metrics["http.server.request.duration"]
	points := m.Data.(metricdata.Histogram[float64]).DataPoints
	if want := []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}; m.Unit != "s" || !cmp.Equal(points[0].Bounds, want) {
		t.Errorf("unit %q and bounds %v, want s and %v", m.Unit, points[0].Bounds, want)
	}
	got := make(map[string]uint64)
	for _, p := range points {
		var text []string
		for _, kv := range p.Attributes.ToSlice() {
			text = append(text, string(kv.Key)+"="+kv.Value.String())
		}
		got[strings.Join(text, " ")] = p.Count
	}
	want := map[string]uint64{
		"http.request.method=GET http.response.status_code=200 http.route=/v1/pets":         1,
		"http.request.method=GET http.response.status_code=200 http.route=/v1/pets/{petId}": 1,
		"http.request.method=GET http.response.status_code=500 http.route=/v1/pets/{petId}": 1, // a panic
		"http.request.method=GET http.response.status_code=404":                             1,
		"http.request.method=PUT http.response.status_code=200":                             1,
		"http.request.method=PUT http.response.status_code=499":                             1, // cancelled by its client
		"http.request.method=QUERY http.response.status_code=405":                           1,
		"http.request.method=_OTHER http.response.status_code=405":                          1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests by attributes (-want +got):\n%s", diff)
	}
	if n := metrics["gatehouse.panics"].Data.(metricdata.Sum[int64]).DataPoints[0].Value; n != 1 {
		t.Errorf("%d panics, want 1", n)
	}
}

// Lines of the log about a traced request name its trace.
func TestLogsNameTheTrace(t *testing.T) {
	sdk := newSDK(t)
	var log strings.Builder
	logger := slog.New(sdk.LogHandler(slog.NewJSONHandler(&log, nil)))
	h, _ := newAPI(t, sdk.Observer, func(c *api.Config) { c.Logger = logger })
	span, _ := sdk.request(t, h, "GET", "/v1/pets")
	for _, want := range []string{`"trace_id":"` + span.SpanContext.TraceID().String(), `"span_id":"` + span.SpanContext.SpanID().String()} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log is\n%s\nwant %s in it", &log, want)
		}
	}
	log.Reset()
	logger.With("a", 1).WithGroup("g").InfoContext(context.Background(), "no request")
	if strings.Contains(log.String(), "trace_id") {
		t.Errorf("a line without a request names a trace: %s", &log)
	}
}

// Each metric of the server has the number that it is named for.
func TestMetricsOfTheServer(t *testing.T) {
	sdk := newSDK(t)
	state := observe.ServerState{
		Ready:       true,
		Admin:       httpserver.Stats{Open: 5, Refused: 7, Evicted: 8, Waited: 9},
		API:         httpserver.Stats{Open: 10, Refused: 12, Evicted: 13, Waited: 14},
		Pool:        &database.Pool{Used: 1, Max: 3, Waits: 4},
		Sunsets:     map[string]time.Time{"getPet": time.Unix(15, 0)},
		Certificate: time.Unix(1_900_000_000, 5),
	}
	must(t, sdk.ObserveServer(func(context.Context) observe.ServerState { return state }))
	want := map[string]int64{
		"petstore.ready": 1, "petstore.saves.failing": 0, "petstore.config.last_reload.success": 1,
		"petstore.connections.open admin": 5, "petstore.connections.refused admin": 7,
		"petstore.connections.evicted admin": 8, "petstore.connections.waited admin": 9,
		"petstore.connections.open api": 10, "petstore.connections.refused api": 12,
		"petstore.connections.evicted api": 13, "petstore.connections.waited api": 14,
		"petstore.database.connections.used": 1, "petstore.database.connections.max": 3, "petstore.database.waits": 4,
		"petstore.deprecation.sunset_timestamp getPet": 15, "petstore.certificate.expiry_timestamp": 1_900_000_000,
	}
	if diff := cmp.Diff(want, numbers(t, sdk)); diff != "" {
		t.Errorf("the metrics of a server that is ready (-want +got):\n%s", diff)
	}
	// Without TLS and PostgreSQL there are no numbers of them.
	state = observe.ServerState{SavesFail: true, LastReloadRefused: true}
	want = map[string]int64{"petstore.ready": 0, "petstore.saves.failing": 1, "petstore.config.last_reload.success": 0}
	for _, name := range []string{"open", "refused", "evicted", "waited"} {
		want["petstore.connections."+name+" api"], want["petstore.connections."+name+" admin"] = 0, 0
	}
	if diff := cmp.Diff(want, numbers(t, sdk)); diff != "" {
		t.Errorf("the metrics of a server in trouble (-want +got):\n%s", diff)
	}
}

// numbers returns the whole numbers of the server by name and value of the attribute.
func numbers(t *testing.T, sdk memorySDK) map[string]int64 {
	t.Helper()
	all := make(map[string]int64)
	for name, m := range sdk.metrics(t) {
		var points []metricdata.DataPoint[int64]
		switch data := m.Data.(type) {
		case metricdata.Gauge[int64]:
			points = data.DataPoints
		case metricdata.Sum[int64]:
			points = data.DataPoints
		}
		for _, p := range points {
			key := name
			for _, kv := range p.Attributes.ToSlice() {
				key = fmt.Sprint(key, " ", kv.Value.AsString())
			}
			if strings.HasPrefix(name, "petstore.") {
				all[key] = p.Value
			}
		}
	}
	return all
}
