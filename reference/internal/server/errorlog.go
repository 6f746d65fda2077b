package server

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// newErrorLog returns a log for net/http that writes to logger.
func newErrorLog(logger *slog.Logger) *log.Logger {
	return log.New(errorLog{logger}, "", 0)
}

type errorLog struct{ logger *slog.Logger }

// Write logs one message. Failed TLS handshakes are at level Debug: scanners cause them
// all day. A client that speaks HTTP/1 after it agreed on HTTP/2 greets with its target, which
// is left out: it can have a secret.
func (l errorLog) Write(message []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.HasPrefix(message, []byte("http: TLS handshake error")) {
		level = slog.LevelDebug
	}
	text, _, _ := bytes.Cut(bytes.TrimSpace(message), []byte(": bogus greeting"))
	l.logger.Log(context.Background(), level, "http server", slog.String("message", string(text)))
	return len(message), nil
}
