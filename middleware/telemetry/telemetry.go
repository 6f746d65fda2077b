// Package telemetry reports what the packages of Gatehouse do through the API of
// OpenTelemetry. There are metrics for the rate limiter and its engine, authentication,
// deprecated operations and panics. The span of a request gets gatehouse.plan,
// gatehouse.result and gatehouse.key.id, the public ID of its API key. The service chooses the
// SDK and its exporters.
//
//	t, err := telemetry.New(nil)
//	...
//	limited, err := limit.New(limiter, identify, limit.Options{Observe: t.Decision})
//	...
//	api = middleware.Chain(api, rs.Recover, t.Panics, auth.Identify, t.Authentication, limited, auth.Require)
//	route := telemetry.Route(telemetry.RouteOptions{ClientAddress: source.Addr})
//	server.Handler = otelhttp.NewHandler(route(api), "", otelhttp.WithServerName("api.example:443"))
//
// examples/service exports it to Prometheus. The instruments, with units in parentheses:
//
//	gatehouse.rate_limiting.requests    counter (request)    gatehouse.plan, gatehouse.result, gatehouse.window
//	gatehouse.rate_limiting.near_limit  counter (request)    gatehouse.plan, gatehouse.window
//	gatehouse.rate_limiting.strikes     counter (strike)     gatehouse.plan
//	gatehouse.bans.started              counter (ban)        gatehouse.plan
//	gatehouse.bans.unbanned             counter (ban)
//	gatehouse.bans.active               gauge (ban)
//	gatehouse.authentication.requests   counter (request)    gatehouse.result
//	gatehouse.deprecation.requests      counter (request)    gatehouse.operation
//	gatehouse.engine.duration           histogram (s)        gatehouse.result
//	gatehouse.engine.subjects, .capacity    gauges (subject)
//	gatehouse.engine.evictions, .refusals   counters (subject)
//	gatehouse.failover.circuit          gauge (0 or 1)       gatehouse.state: closed, open
//	gatehouse.failover.pending          gauge (subject)
//	gatehouse.failover.fallbacks, .failures, .timeouts, .opened, .lost   counters
//	gatehouse.lease.shares, .held       gauges (subject, unit)
//	gatehouse.lease.local, .asked, .returned, .expired   counters
//	gatehouse.in_flight.requests        counter (request)    gatehouse.limiter, gatehouse.result
//	gatehouse.in_flight.unshared        counter (request)    gatehouse.limiter
//	gatehouse.in_flight.running, .waiting   gauges (request) gatehouse.limiter
//	gatehouse.in_flight.subjects        gauge (subject)      gatehouse.limiter
//	gatehouse.redis.duration            histogram (s)
//	gatehouse.redis.batch_size          histogram (request)
//	gatehouse.panics                    counter (panic)
//
// gatehouse.result of a decision is allowed, limited, banned or suspended, or undecided if the
// engine failed or the request costs more than a quota. For an authentication it is the text of
// a [bearer.Outcome], and for a limit on requests in progress admitted or refused. The service
// names that limit by gatehouse.limiter. The gatehouse.window of the applicable quota is
// second, minute, hour, day, month, local-day (a day in a time zone), 900s and the like, after
// smooth- for a smooth quota, and "" without a quota. The counter near_limit has allowed
// requests that left at most a tenth of it.
//
// # Cardinality
//
// Clients cannot create series: no attribute has a subject, a host, a path, an address
// or a key. Names that come from settings and stored keys are bounded: 100 plans, 400
// pairs of a plan and a window, and 100 operations. Further ones have the value other.
//
// Set otelhttp.WithServerName: without it, its metrics have any Host that is sent.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/animalstore/gatehouse/internal/nilvalue"
)

// scope is the name of the meter and of the tracer.
const scope = "github.com/animalstore/gatehouse/middleware/telemetry"

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
}

// New makes the instruments with a MeterProvider. Nil: the global one,
// otel.GetMeterProvider. Errors come from the MeterProvider.
//
// There is no TracerProvider: attributes are set on the span in the context of a
// request, and further spans come from the provider that made it.
func New(provider metric.MeterProvider) (*Telemetry, error) {
	switch {
	case provider == nil:
		provider = otel.GetMeterProvider()
	case nilvalue.In(provider):
		return nil, fmt.Errorf("telemetry: the MeterProvider must not be a nil %T", provider)
	}
	t := &Telemetry{meter: provider.Meter(scope)}
	t.unbanned.attrs, t.panics.attrs = with(), with()
	err := t.make(func(m *maker) {
		t.makeDecisions(m)
		t.makeAuthentication(m)
		t.makeDeprecated(m)
		t.makeEngine(m)
		t.makeRedis(m)
		unbanned := m.counter("gatehouse.bans.unbanned", "{ban}", "Bans that ended before their time because of Unban")
		panics := m.counter("gatehouse.panics", "{panic}", "Handlers that panicked")
		m.observe(func(_ context.Context, o metric.Observer) error {
			t.unbanned.observe(o, unbanned)
			t.panics.observe(o, panics)
			return nil
		}, unbanned, panics)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// make makes instruments, all or none, and returns the errors of the MeterProvider.
func (t *Telemetry) make(instruments func(*maker)) error {
	m := maker{meter: t.meter}
	instruments(&m)
	if m.err != nil {
		for _, r := range m.registered {
			_ = r.Unregister()
		}
		return fmt.Errorf("telemetry: %w", m.err)
	}
	return nil
}

// observe makes the instruments for what the service observes, named what.
func (t *Telemetry) observe(what string, missing bool, instruments func(*maker)) error {
	switch {
	case t == nil:
		return nil
	case missing:
		return fmt.Errorf("telemetry: %s must not be nil", what)
	}
	return t.make(instruments)
}

// A maker makes instruments that are read when the MeterProvider collects, and remembers
// what failed.
type maker struct {
	meter      metric.Meter
	registered []metric.Registration
	err        error
}

func (m *maker) counter(name, unit, description string) metric.Int64ObservableCounter {
	c, err := m.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.err = errors.Join(m.err, err)
	return c
}

func (m *maker) gauge(name, unit, description string) metric.Int64ObservableGauge {
	g, err := m.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.err = errors.Join(m.err, err)
	return g
}

// observe registers the callback that reads the instruments.
func (m *maker) observe(f metric.Callback, instruments ...metric.Observable) {
	if m.err != nil {
		return
	}
	r, err := m.meter.RegisterCallback(f, instruments...)
	if m.err = err; err == nil {
		m.registered = append(m.registered, r)
	}
}

// read registers a callback that reads all the numbers of some statistics at once: one for
// each of the instruments, in their order.
func (m *maker) read(numbers func() []int64, attrs metric.MeasurementOption, instruments ...metric.Observable) {
	m.observe(func(_ context.Context, o metric.Observer) error {
		for i, n := range numbers() {
			o.ObserveInt64(instruments[i].(metric.Int64Observable), n, attrs)
		}
		return nil
	}, instruments...)
}

// A count is the value of one series of a counter. It is kept here and read when the
// MeterProvider collects: to count is then one atomic addition, and the series exists,
// with zero, before the first event.
type count struct {
	n     atomic.Int64
	attrs metric.MeasurementOption
}

func (c *count) observe(o metric.Observer, into metric.Int64Observable) {
	o.ObserveInt64(into, c.n.Load(), c.attrs)
}

// with returns the option for a series with these attributes.
func with(attrs ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attrs...))
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
