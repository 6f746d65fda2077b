package server

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// newErrorLog returns the log that net/http writes to, as lines of logger.
func newErrorLog(logger *slog.Logger) *log.Logger {
	return log.New(errorLog{logger}, "", 0)
}

type errorLog struct{ logger *slog.Logger }

// Write takes one message. Failed handshakes are what scanners do all day, and
// say nothing about this server.
func (l errorLog) Write(message []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.HasPrefix(message, []byte("http: TLS handshake error")) {
		level = slog.LevelDebug
	}
	l.logger.Log(context.Background(), level, "http server", slog.String("message", string(bytes.TrimSpace(message))))
	return len(message), nil
}
