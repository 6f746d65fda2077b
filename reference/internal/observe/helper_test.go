package observe_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/observe"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var must = testcheck.NoError

// proxies are trusted to name the client.
var proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}

// engine is an engine that an Observer measures.
type engine struct {
	*memory.Limiter
	o *observe.Observer
}

func (e engine) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	return e.o.Take(ctx, e.Limiter, subject, plan, cost)
}

// newAPI returns the handler of the API on a database of its own with a pet, as
// package server makes it, and a key of a plan that no test uses up. Requests for one pet
// panic; see failing.
func newAPI(t testing.TB, o *observe.Observer, adjust func(*api.Config)) (handler http.Handler, key string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "pets.db"), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	_, err = db.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
	must(t, err)
	limits, err := memory.New(memory.Options{})
	must(t, err)
	settings := config.Default()
	settings.Anonymous = ratelimit.MustPlan("anonymous", ratelimit.Penalty{}, ratelimit.PerDay(1_000_000))
	settings.HTTP.TrustedProxies = proxies
	c := api.Config{
		Config: settings, Pets: db, Keys: db, Limiter: limits, Plan: settings.Plans.Of,
		Logger: slog.New(slog.NewJSONHandler(io.Discard, nil)),
	}
	measured := o.Store(db)
	c.Pets, c.Keys, c.Limiter = failing{measured}, measured, engine{limits, o}
	c.OnDecision, c.Telemetry = o.Decision, o.Telemetry
	if adjust != nil {
		adjust(&c)
	}
	handler, err = api.New(c)
	must(t, err)
	client, err := settings.Client()
	must(t, err)
	secret, err := api.NewKey()
	must(t, err)
	_, err = db.CreateKey(t.Context(), store.NewKey{
		Digest: secret.Digest(), LastFour: secret.LastFour(), Name: "test", Owner: "roomy", Plan: "enterprise",
		Quotas: []string{"1000000000/day"}, Created: time.Now(),
	}, store.Actor{Name: "test"})
	must(t, err)
	return o.Handler(handler, client.Addr), secret.Reveal()
}

// memorySDK is an SDK in memory.
type memorySDK struct {
	*observe.Observer
	reader *sdkmetric.ManualReader
	spans  *tracetest.InMemoryExporter
}

func newSDK(t testing.TB) memorySDK {
	t.Helper()
	sdk := memorySDK{reader: sdkmetric.NewManualReader(), spans: tracetest.NewInMemoryExporter()}
	sdk.Observer = observe.InMemory(t, sdk.reader, sdk.spans)
	return sdk
}

// metrics returns what is collected, by name.
func (s memorySDK) metrics(t testing.TB) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	must(t, s.reader.Collect(t.Context(), &all))
	metrics := make(map[string]metricdata.Metrics)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			metrics[m.Name] = m
		}
	}
	return metrics
}

// request returns the span of a request and the histogram points of its measurement.
func (s memorySDK) request(t testing.TB, h http.Handler, method, target string, fields ...string) (tracetest.SpanStub, *httptest.ResponseRecorder) {
	t.Helper()
	s.spans.Reset()
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = "10.0.0.1:4000"
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	spans := s.spans.GetSpans()
	i := slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.SpanKind.String() == "server" })
	if i < 0 {
		t.Fatalf("%s %s has no span of kind server", method, target)
	}
	return spans[i], w
}

func attributes(s tracetest.SpanStub) map[string]string {
	all := make(map[string]string)
	for _, kv := range s.Attributes {
		all[string(kv.Key)] = kv.Value.String()
	}
	return all
}

// failing is a store that panics for a pet.
type failing struct{ store.Pets }

func (f failing) Pet(ctx context.Context, id int64) (store.Pet, error) {
	if id == 666 {
		panic("a bug")
	}
	return f.Pets.Pet(ctx, id)
}
