package service

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/animalstore/gatehouse/reference/internal/logging"
)

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
