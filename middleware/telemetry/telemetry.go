package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/animalstore/gatehouse/internal/nilvalue"
)

// scope is the name of the meter and of the tracer.
const scope = "github.com/animalstore/gatehouse/middleware/telemetry"

// Options are optional settings of [New]. The zero value works.
type Options struct {
	// MeterProvider makes the instruments. Nil: the global one, otel.GetMeterProvider.
	//
	// There is no TracerProvider: attributes are set on the span in the context of a
	// request, and further spans come from the provider that made it.
	MeterProvider metric.MeterProvider
}

// A Telemetry has the instruments, and the hooks that feed them. [New] makes it. It is
// safe for concurrent use.
//
// A nil *Telemetry records nothing: its hooks do nothing, its middlewares return the
// handler that they are given, and Take calls the limiter.
type Telemetry struct {
	meter metric.Meter

	decisions      decisions
	authentication [outcomes]count
	deprecated     deprecated
	engine         engineMeter
	redis          redis
	unbanned       count
	panics         count

	mu            sync.Mutex
	registrations []metric.Registration
}

// New makes the instruments. An error is that of the MeterProvider.
func New(o Options) (*Telemetry, error) {
	switch {
	case o.MeterProvider == nil:
		o.MeterProvider = otel.GetMeterProvider()
	case nilvalue.In(o.MeterProvider):
		return nil, fmt.Errorf("telemetry: Options.MeterProvider must not be a nil %T", o.MeterProvider)
	}
	t := &Telemetry{meter: o.MeterProvider.Meter(scope)}
	for _, create := range []func() error{
		t.createDecisions, t.createAuthentication, t.createDeprecated, t.createEngine, t.createRedis, t.createCounts,
	} {
		if err := create(); err != nil {
			return nil, errors.Join(fmt.Errorf("telemetry: %w", err), t.Close())
		}
	}
	return t, nil
}

// createCounts makes the counters without attributes.
func (t *Telemetry) createCounts() error {
	return errors.Join(
		t.observeCount("gatehouse.bans.unbanned", "{ban}", "Bans that ended before their time because of Unban", t.unbanned.n.Load),
		t.observeCount("gatehouse.panics", "{panic}", "Handlers that panicked", t.panics.n.Load),
	)
}

// Close takes the instruments out of the MeterProvider's collections. Hooks may still
// be called.
func (t *Telemetry) Close() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, r := range t.registrations {
		errs = append(errs, r.Unregister())
	}
	t.registrations = nil
	return errors.Join(errs...)
}

// A count is the value of one series of a counter. It is kept here and read when the
// MeterProvider collects: to count is then one atomic addition, and the series exists,
// with zero, before the first event.
type count struct {
	n     atomic.Int64
	attrs metric.MeasurementOption
}

func (c *count) observe(o metric.Observer, into metric.Int64Observable) {
	if c.attrs == nil {
		o.ObserveInt64(into, c.n.Load())
		return
	}
	o.ObserveInt64(into, c.n.Load(), c.attrs)
}

// with returns the option for a series with these attributes.
func with(attrs ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attrs...))
}

// counter makes a counter that is read when the MeterProvider collects.
func (t *Telemetry) counter(name, unit, description string) (metric.Int64ObservableCounter, error) {
	return t.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
}

func (t *Telemetry) gauge(name, unit, description string) (metric.Int64ObservableGauge, error) {
	return t.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
}

// observeCount makes a counter without attributes.
func (t *Telemetry) observeCount(name, unit, description string, read func() int64) error {
	c, err := t.counter(name, unit, description)
	if err != nil {
		return err
	}
	return t.register(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(c, read())
		return nil
	}, c)
}

// register registers a callback until Close.
func (t *Telemetry) register(f metric.Callback, instruments ...metric.Observable) error {
	r, err := t.meter.RegisterCallback(f, instruments...)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.registrations = append(t.registrations, r)
	return nil
}

// Panics is a middleware that counts panics, and passes them on. Place it directly
// inside the middleware that recovers. A panic with [http.ErrAbortHandler] aborts a
// response on purpose and is not counted.
func (t *Telemetry) Panics(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v != http.ErrAbortHandler {
				t.panics.n.Add(1)
			}
			panic(v) // with the stack of the first panic, which has not been unwound yet
		}()
		next.ServeHTTP(w, r)
	})
}
