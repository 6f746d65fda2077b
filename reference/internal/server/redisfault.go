package server

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/logging"
)

// failing returns the error for readiness while Redis fails with err.
func failing(err error, mode string) error {
	return fmt.Errorf("Redis cannot be used; until it can, on_redis_failure: %s is in force: %w", mode, err)
}

// redisLogPeriod is the time between two lines about an outage of Redis.
const redisLogPeriod = time.Minute

// circuitLog writes to the log when Redis cannot be used, and when it answers again.
// During an outage the circuit opens again after each probe, every few seconds, so one line
// is written in each redisLogPeriod.
type circuitLog struct {
	logger *slog.Logger
	mode   string // on_redis_failure

	mu      sync.Mutex
	written time.Time // when the last line about an outage was written; zero if Redis answered after it
}

// changed is for [failover.Options] OnChange.
func (l *circuitLog) changed(failure error) {
	if failure != nil {
		l.failed(failure)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written = time.Time{}
	l.logger.Info("Redis answers again", slog.String("limits", "shared"))
}

func (l *circuitLog) failed(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.written) < redisLogPeriod {
		return
	}
	l.written = now
	l.logger.Error("Redis cannot be used; check the setting redis and the log of Redis",
		slog.String("limits", l.mode), slog.Any("error", cause))
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
