package observe

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

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
