package telemetry_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	api "go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/telemetry"
)

// collected is a Telemetry with a reader of its metrics.
type collected struct {
	*telemetry.Telemetry
	reader *metric.ManualReader
}

func collect(t testing.TB) collected {
	t.Helper()
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	t.Cleanup(func() { provider.Shutdown(t.Context()) })
	tel := testcheck.Must(telemetry.New(provider))
	return collected{tel, reader}
}

// series returns what is collected for an instrument, by the values of its attributes
// in the order of their keys. A histogram is the number of its measurements.
func (c collected) series(t testing.TB, name string) map[string]int64 {
	t.Helper()
	found := make(map[string]int64)
	for _, m := range c.metrics(t) {
		if m.Name != name {
			continue
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				found[values(p.Attributes)] = p.Value
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				found[values(p.Attributes)] = p.Value
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				found[values(p.Attributes)] = int64(p.Count)
			}
		case metricdata.Histogram[int64]:
			for _, p := range data.DataPoints {
				found[values(p.Attributes)] = int64(p.Count)
			}
		default:
			t.Fatalf("%s is a %T", name, data)
		}
	}
	return found
}

func (c collected) metrics(t testing.TB) []metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	testcheck.NoError(t, c.reader.Collect(t.Context(), &all))
	var metrics []metricdata.Metrics
	for _, scope := range all.ScopeMetrics {
		metrics = slices.Concat(metrics, scope.Metrics)
	}
	return metrics
}

func values(attrs attribute.Set) string {
	var all []string
	for _, kv := range attrs.ToSlice() {
		all = append(all, fmt.Sprint(kv.Value.AsInterface()))
	}
	return strings.Join(all, " ")
}

// nonzero removes the series that nothing has happened to.
func nonzero(series map[string]int64) map[string]int64 {
	for k, v := range series {
		if v == 0 {
			delete(series, k)
		}
	}
	return series
}

// failing is a MeterProvider whose meters cannot make the counter of panics, the last
// instrument. It counts the callbacks that are registered.
type failing struct {
	noop.MeterProvider
	callbacks int
}

type failingMeter struct {
	noop.Meter
	provider *failing
}

type failingRegistration struct {
	noop.Registration
	provider *failing
}

func (f *failing) Meter(string, ...api.MeterOption) api.Meter { return failingMeter{provider: f} }

func (m failingMeter) Int64ObservableCounter(name string, o ...api.Int64ObservableCounterOption) (api.Int64ObservableCounter, error) {
	if name == "gatehouse.panics" {
		return nil, errors.New("no more counters")
	}
	return m.Meter.Int64ObservableCounter(name, o...)
}

func (m failingMeter) RegisterCallback(api.Callback, ...api.Observable) (api.Registration, error) {
	m.provider.callbacks++
	return failingRegistration{provider: m.provider}, nil
}

func (r failingRegistration) Unregister() error { r.provider.callbacks--; return nil }

// If New fails, no callback stays registered.
func TestNewLeavesNothingBehind(t *testing.T) {
	provider := new(failing)
	if _, err := telemetry.New(provider); err == nil || provider.callbacks != 0 {
		t.Errorf("error %v, and %d callbacks are registered, want an error and none", err, provider.callbacks)
	}
}
