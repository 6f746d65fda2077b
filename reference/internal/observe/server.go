package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

// A ServerState is what the metrics say about a server.
type ServerState struct {
	Ready     bool
	SavesFail bool // usage, or the use of deprecated operations, cannot be saved

	Reloads, RefusedReloads int64 // how often the settings were read again
	LastReloadRefused       bool

	API, Admin httpserver.Stats // the listeners

	Sunsets     map[string]time.Time // when deprecated operations are removed, by operationId
	Certificate time.Time            // when the certificate expires; zero: there is none
}

// ObserveServer reports the state of a server. The function is called when metrics are
// collected, and must be safe for concurrent use. Call it once.
func (o *Observer) ObserveServer(state func(context.Context) ServerState) error {
	n := numbers{o: o}
	ready := n.gauge("petstore.ready", "", "1 while the server is ready")
	saves := n.gauge("petstore.saves.failing", "", "1 while usage or the use of deprecated operations cannot be saved")
	reloads := n.counter("petstore.config.reloads", "{reload}", "Reloads of the settings")
	success := n.gauge("petstore.config.last_reload.success", "", "1 unless the last reload of the settings was refused")
	sunset := n.gauge("petstore.deprecation.sunset_timestamp", "s", "Unix time from which a deprecated operation is removed")
	expiry := n.gauge("petstore.certificate.expiry_timestamp", "s", "Unix time at which the certificate in use expires")
	connections := n.connections()
	return n.observe(func(ctx context.Context, to metric.Observer) {
		s := state(ctx)
		to.ObserveInt64(ready, number(s.Ready))
		to.ObserveInt64(saves, number(s.SavesFail))
		to.ObserveInt64(reloads, s.Reloads, with("gatehouse.result", "applied"))
		to.ObserveInt64(reloads, s.RefusedReloads, with("gatehouse.result", "refused"))
		to.ObserveInt64(success, number(!s.LastReloadRefused))
		for operation, at := range s.Sunsets {
			to.ObserveInt64(sunset, at.Unix(), with("gatehouse.operation", operation))
		}
		if !s.Certificate.IsZero() {
			to.ObserveInt64(expiry, s.Certificate.Unix())
		}
		connections(to, s.API, with("petstore.listener", "api"))
		connections(to, s.Admin, with("petstore.listener", "admin"))
	})
}

// connections returns a function that reports the connections of a listener.
func (n *numbers) connections() func(to metric.Observer, s httpserver.Stats, of metric.MeasurementOption) {
	const unit = "{connection}"
	open := n.gauge("petstore.connections.open", unit, "Open connections")
	idle := n.gauge("petstore.connections.idle", unit, "Open connections without a running request")
	refused := n.counter("petstore.connections.refused", unit, "Connections over the limit of their network")
	evicted := n.counter("petstore.connections.evicted", unit, "Idle connections closed to make room")
	waited := n.counter("petstore.connections.waited", unit, "Connections that waited because every open connection had a running request")
	return func(to metric.Observer, s httpserver.Stats, of metric.MeasurementOption) {
		to.ObserveInt64(open, int64(s.Open), of)
		to.ObserveInt64(idle, int64(s.Idle), of)
		to.ObserveInt64(refused, s.Refused, of)
		to.ObserveInt64(evicted, s.Evicted, of)
		to.ObserveInt64(waited, s.Waited, of)
	}
}

// ObservePool reports how the connections to PostgreSQL are used. The function is called
// when metrics are collected, must be safe for concurrent use, and may be nil: then
// there is no pool, and nothing is reported. Call it once.
//
// The semantic conventions of OpenTelemetry have db.client.connection.count and others
// for this, which are not stable.
func (o *Observer) ObservePool(pool func() database.Pool) error {
	if pool == nil {
		return nil
	}
	n := numbers{o: o}
	const unit = "{connection}"
	used := n.gauge("petstore.database.connections.used", unit, "Connections to PostgreSQL with a running call")
	idle := n.gauge("petstore.database.connections.idle", unit, "Connections to PostgreSQL without a running call")
	most := n.gauge("petstore.database.connections.max", unit, "Maximum number of connections to PostgreSQL (pool_max_conns)")
	waits := n.counter("petstore.database.waits", "{call}", "Calls of the database that waited for a connection and got one")
	timeouts := n.counter("petstore.database.wait_timeouts", "{call}", "Calls of the database that got no connection in time")
	waited, err := o.meter.Float64ObservableCounter("petstore.database.wait_time", metric.WithUnit("s"),
		metric.WithDescription("Time that calls of the database waited for a connection"))
	n.add(waited, err)
	return n.observe(func(_ context.Context, to metric.Observer) {
		p := pool()
		to.ObserveInt64(used, p.Used)
		to.ObserveInt64(idle, p.Idle)
		to.ObserveInt64(most, p.Max)
		to.ObserveInt64(waits, p.Waits)
		to.ObserveInt64(timeouts, p.WaitTimeouts)
		to.ObserveFloat64(waited, p.Waited.Seconds())
	})
}

// numbers are instruments that are observed together, and the errors in making them.
type numbers struct {
	o           *Observer
	instruments []metric.Observable
	errs        []error
}

func (n *numbers) add(i metric.Observable, err error) {
	n.instruments, n.errs = append(n.instruments, i), append(n.errs, err)
}

func (n *numbers) gauge(name, unit, description string) metric.Int64ObservableGauge {
	g, err := n.o.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
	n.add(g, err)
	return g
}

func (n *numbers) counter(name, unit, description string) metric.Int64ObservableCounter {
	c, err := n.o.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	n.add(c, err)
	return c
}

// observe calls f whenever metrics are collected, for the life of the SDK.
func (n *numbers) observe(f func(context.Context, metric.Observer)) error {
	err := errors.Join(n.errs...)
	if err == nil {
		_, err = n.o.meter.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
			f(ctx, to)
			return nil
		}, n.instruments...)
	}
	if err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	return nil
}

func with(key, value string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String(key, value))
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// scrapes are how many requests for metrics may run at once.
const scrapes = 4

// scrapeTimeout bounds one request for metrics.
const scrapeTimeout = 10 * time.Second

// Metrics returns the handler of /metrics, in the formats of Prometheus.
func (o *Observer) Metrics() http.Handler {
	return promhttp.HandlerFor(o.registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(o.logger.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError, // a part is better than nothing
		MaxRequestsInFlight: scrapes,
		Timeout:             scrapeTimeout,
		EnableOpenMetrics:   true, // has exemplars
	})
}
