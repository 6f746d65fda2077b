package server

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/animalstore/gatehouse/reference/internal/logging"
)

// circuitLog writes to the log when Redis cannot be used, and when it answers again.
// During an outage the circuit opens again after each probe, every few seconds, so at
// most one line a minute is written.
type circuitLog struct {
	logger *slog.Logger
	mode   string // on_redis_failure
	limit  logging.Minutely
}

// changed is for [failover.Options] OnChange.
func (l *circuitLog) changed(failure error) {
	if failure != nil {
		l.failed(failure)
		return
	}
	l.limit.Reset()
	l.logger.Info("Redis answers again", slog.String("limits", "shared"))
}

func (l *circuitLog) failed(cause error) {
	if _, ok := l.limit.Pass(); ok {
		l.logger.Error("Redis cannot be used; check the setting redis and the log of Redis",
			slog.String("limits", l.mode), slog.Any("error", cause))
	}
}

// redisLog writes messages of go-redis to the log, at most one in a minute: while Redis
// cannot be reached there is one for each attempt to connect. go-redis has one logger
// for the process.
type redisLog struct {
	logger *slog.Logger
	limit  logging.Minutely
}

// Printf is for [redis.SetLogger].
func (l *redisLog) Printf(ctx context.Context, format string, args ...any) {
	if dropped, ok := l.limit.Pass(); ok {
		l.logger.WarnContext(ctx, "Redis client", slog.String("message", fmt.Sprintf(format, args...)), slog.Int("dropped", dropped))
	}
}
