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
	Ready             bool
	SavesFail         bool // usage, or the use of deprecated operations, cannot be saved
	LastReloadRefused bool // of the settings

	API, Admin httpserver.Stats // the listeners
	Pool       *database.Pool   // the connections to PostgreSQL; nil: there are none

	Sunsets     map[string]time.Time // when deprecated operations are removed, by operationId
	Certificate time.Time            // when the certificate expires; zero: there is none
}

// A stateMetric is a metric of a ServerState, with a value for each value of the attribute key.
type stateMetric struct {
	name, unit, help string
	counter          bool // it only grows
	key              attribute.Key
	values           func(s ServerState) map[string]int64 // by the attribute; "": without it
}

const connections = "{connection}"

// stateMetrics are all metrics of a ServerState. The semantic conventions of OpenTelemetry
// have db.client.connection.count and others for the pool, which are not stable.
var stateMetrics = []stateMetric{
	{"petstore.ready", "", "1 while the server is ready", false, "",
		func(s ServerState) map[string]int64 { return truth(s.Ready) }},
	{"petstore.saves.failing", "", "1 while usage, bans or counts of use cannot be saved", false, "",
		func(s ServerState) map[string]int64 { return truth(s.SavesFail) }},
	{"petstore.config.last_reload.success", "", "1 unless the last reload of the settings was refused", false, "",
		func(s ServerState) map[string]int64 { return truth(!s.LastReloadRefused) }},
	{"petstore.deprecation.sunset_timestamp", "s", "Unix time from which a deprecated operation is removed", false, "gatehouse.operation",
		func(s ServerState) map[string]int64 { return unixTimes(s.Sunsets) }},
	{"petstore.certificate.expiry_timestamp", "s", "Unix time at which the certificate in use expires", false, "",
		func(s ServerState) map[string]int64 { return unixTimes(map[string]time.Time{"": s.Certificate}) }},

	{"petstore.connections.open", connections, "Open connections", false, "petstore.listener",
		listeners(func(s httpserver.Stats) int64 { return int64(s.Open) })},
	{"petstore.connections.refused", connections, "Connections over the limit of their network", true, "petstore.listener",
		listeners(func(s httpserver.Stats) int64 { return s.Refused })},
	{"petstore.connections.evicted", connections, "Idle connections closed to make room", true, "petstore.listener",
		listeners(func(s httpserver.Stats) int64 { return s.Evicted })},
	{"petstore.connections.waited", connections, "Connections that waited because every open connection had a running request", true, "petstore.listener",
		listeners(func(s httpserver.Stats) int64 { return s.Waited })},

	{"petstore.database.connections.used", connections, "Connections to PostgreSQL with a running call", false, "",
		pool(func(p database.Pool) int64 { return p.Used })},
	{"petstore.database.connections.max", connections, "Maximum number of connections to PostgreSQL (pool_max_conns)", false, "",
		pool(func(p database.Pool) int64 { return p.Max })},
	{"petstore.database.waits", "{call}", "Calls of the database that waited for a connection and got one", true, "",
		pool(func(p database.Pool) int64 { return p.Waits })},
}

func truth(b bool) map[string]int64 {
	if b {
		return map[string]int64{"": 1}
	}
	return map[string]int64{"": 0}
}

// unixTimes leaves out zero times.
func unixTimes(times map[string]time.Time) map[string]int64 {
	all := make(map[string]int64)
	for name, at := range times {
		if !at.IsZero() {
			all[name] = at.Unix()
		}
	}
	return all
}

func listeners(number func(httpserver.Stats) int64) func(ServerState) map[string]int64 {
	return func(s ServerState) map[string]int64 {
		return map[string]int64{"api": number(s.API), "admin": number(s.Admin)}
	}
}

func pool(number func(database.Pool) int64) func(ServerState) map[string]int64 {
	return func(s ServerState) map[string]int64 {
		if s.Pool == nil {
			return nil
		}
		return map[string]int64{"": number(*s.Pool)}
	}
}

// ObserveServer reports the state of a server. The function is called when metrics are
// collected, and must be safe for concurrent use. Call it once.
func (o *Observer) ObserveServer(state func(context.Context) ServerState) error {
	instruments := make([]metric.Int64Observable, len(stateMetrics))
	observed := make([]metric.Observable, len(stateMetrics))
	errs := make([]error, len(stateMetrics))
	for i, m := range stateMetrics {
		unit, help := metric.WithUnit(m.unit), metric.WithDescription(m.help)
		if m.counter {
			instruments[i], errs[i] = o.meter.Int64ObservableCounter(m.name, unit, help)
		} else {
			instruments[i], errs[i] = o.meter.Int64ObservableGauge(m.name, unit, help)
		}
		observed[i] = instruments[i]
	}
	_, err := o.meter.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		now := state(ctx)
		for i, m := range stateMetrics {
			for name, value := range m.values(now) {
				var attributes []attribute.KeyValue
				if name != "" {
					attributes = append(attributes, m.key.String(name))
				}
				to.ObserveInt64(instruments[i], value, metric.WithAttributes(attributes...))
			}
		}
		return nil
	}, observed...)
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	return nil
}

// scrapes is how many requests for metrics may run at once.
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
