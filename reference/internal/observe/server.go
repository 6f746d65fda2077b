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

	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

// A Server has what the metrics say about a server. The functions are called when
// metrics are collected, must be safe for concurrent use, and must not be nil.
type Server struct {
	Ready        func(context.Context) bool
	SavesFail    func() bool    // usage, or the use of deprecated operations, cannot be saved
	DroppedLines func() uint64  // lines of the log
	Reloads      func() Reloads // of the settings
	Connections  func(Listener) httpserver.Stats
}

// A Listener is the name of a listener of the server.
type Listener string

// The listeners.
const (
	API   Listener = "api"
	Admin Listener = "admin"
)

// Reloads says how often the settings were read again.
type Reloads struct {
	Applied, Refused int64
	LastRefused      bool
}

// ObserveServer reports the metrics of a server. Call it once.
func (o *Observer) ObserveServer(s Server) error {
	if err := errors.Join(o.observeStates(s), o.observeReloads(s), o.observeConnections(s)); err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	return nil
}

func (o *Observer) observeStates(s Server) error {
	var errs [3]error
	ready, err := o.meter.Int64ObservableGauge("petstore.ready", metric.WithDescription("1 while the server is ready"))
	errs[0] = err
	saves, err := o.meter.Int64ObservableGauge("petstore.saves.failing",
		metric.WithDescription("1 while usage or the use of deprecated operations cannot be saved"))
	errs[1] = err
	dropped, err := o.meter.Int64ObservableCounter("petstore.log.dropped_lines", metric.WithUnit("{line}"),
		metric.WithDescription("Lines that the log could not take"))
	errs[2] = err
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	return o.register(func(ctx context.Context, to metric.Observer) error {
		to.ObserveInt64(ready, number(s.Ready(ctx)))
		to.ObserveInt64(saves, number(s.SavesFail()))
		to.ObserveInt64(dropped, int64(s.DroppedLines()))
		return nil
	}, ready, saves, dropped)
}

func (o *Observer) observeReloads(s Server) error {
	count, err := o.meter.Int64ObservableCounter("petstore.config.reloads", metric.WithUnit("{reload}"),
		metric.WithDescription("Reloads of the settings"))
	if err != nil {
		return err
	}
	success, err := o.meter.Int64ObservableGauge("petstore.config.last_reload.success",
		metric.WithDescription("1 unless the last reload of the settings was refused"))
	if err != nil {
		return err
	}
	applied := metric.WithAttributes(attribute.String("gatehouse.result", "applied"))
	refused := metric.WithAttributes(attribute.String("gatehouse.result", "refused"))
	return o.register(func(_ context.Context, to metric.Observer) error {
		r := s.Reloads()
		to.ObserveInt64(count, r.Applied, applied)
		to.ObserveInt64(count, r.Refused, refused)
		to.ObserveInt64(success, number(!r.LastRefused))
		return nil
	}, count, success)
}

func (o *Observer) observeConnections(s Server) error {
	const unit = "{connection}"
	var errs [5]error
	open, err := o.meter.Int64ObservableGauge("petstore.connections.open", metric.WithUnit(unit),
		metric.WithDescription("Open connections"))
	errs[0] = err
	idle, err := o.meter.Int64ObservableGauge("petstore.connections.idle", metric.WithUnit(unit),
		metric.WithDescription("Open connections without a running request"))
	errs[1] = err
	refused, err := o.meter.Int64ObservableCounter("petstore.connections.refused", metric.WithUnit(unit),
		metric.WithDescription("Connections over the limit of their network"))
	errs[2] = err
	evicted, err := o.meter.Int64ObservableCounter("petstore.connections.evicted", metric.WithUnit(unit),
		metric.WithDescription("Idle connections closed to make room"))
	errs[3] = err
	waited, err := o.meter.Int64ObservableCounter("petstore.connections.waited", metric.WithUnit(unit),
		metric.WithDescription("Connections that waited because every open connection had a running request"))
	errs[4] = err
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	return o.register(func(_ context.Context, to metric.Observer) error {
		for _, l := range []Listener{API, Admin} {
			c, of := s.Connections(l), metric.WithAttributes(attribute.String("petstore.listener", string(l)))
			to.ObserveInt64(open, int64(c.Open), of)
			to.ObserveInt64(idle, int64(c.Idle), of)
			to.ObserveInt64(refused, c.Refused, of)
			to.ObserveInt64(evicted, c.Evicted, of)
			to.ObserveInt64(waited, c.Waited, of)
		}
		return nil
	}, open, idle, refused, evicted, waited)
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// register registers a callback for the life of the SDK.
func (o *Observer) register(f metric.Callback, instruments ...metric.Observable) error {
	_, err := o.meter.RegisterCallback(f, instruments...)
	return err
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
