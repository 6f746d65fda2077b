package observe

import (
	"log/slog"
	"strings"
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
		l.logger.Warn("OpenTelemetry failed; check the collector and the OTEL_ variables", errorAttr(err), slog.Int("dropped", l.dropped))
		l.written, l.dropped = now, 0
		return
	}
	l.dropped++
}

// maxErrorText is how many bytes of an error of the SDK are logged.
const maxErrorText = 1000

// errorAttr is the attribute for an error of the SDK or an exporter. Its text can contain
// the body of a response, of up to 4 MiB, which is more than the buffer of the log holds.
func errorAttr(err error) slog.Attr {
	text := err.Error()
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return slog.String("error", text)
}

// logErrors sends the errors of the SDK to the log instead of standard error. The SDK
// has one handler for the process.
func logErrors(logger *slog.Logger) {
	otel.SetErrorHandler(&errorLog{logger: logger})
	otel.SetLogger(logr.FromSlogHandler(sdkHandler{logger.Handler()}))
}
