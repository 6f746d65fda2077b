package observe

import (
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
)

// errorPeriod is the time between two errors of the SDK in the log. While a collector
// cannot be reached there is one for each batch.
const errorPeriod = time.Minute

// errorLog writes one error in each errorPeriod to the log, and counts the others.
type errorLog struct {
	logger *slog.Logger

	mu      sync.Mutex
	written time.Time // time of the last error that was written
	dropped int       // errors since then
}

// Handle is for [otel.SetErrorHandler].
func (l *errorLog) Handle(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.written) >= errorPeriod {
		l.logger.Warn("OpenTelemetry failed; check the collector and the OTEL_ variables", slog.Any("error", err), slog.Int("dropped", l.dropped))
		l.written, l.dropped = now, 0
		return
	}
	l.dropped++
}

// logErrors sends the errors of the SDK to the log instead of standard error. The SDK
// has one handler for the process.
func logErrors(logger *slog.Logger) {
	otel.SetErrorHandler(&errorLog{logger: logger})
	otel.SetLogger(logr.FromSlogHandler(logger.Handler()))
}
