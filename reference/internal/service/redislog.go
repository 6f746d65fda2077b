package service

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// redisLogPeriod is the time between two messages of the Redis client in the log.
const redisLogPeriod = time.Minute

// redisLog writes messages of go-redis to the log. While Redis cannot be reached there
// is a message for each attempt to connect, so it writes one in each redisLogPeriod
// and counts the others. go-redis has one logger for the process.
type redisLog struct {
	logger *slog.Logger

	mu      sync.Mutex
	written time.Time // time of the last message that was written
	dropped int       // messages since then
}

// Printf is for [redis.SetLogger].
func (l *redisLog) Printf(ctx context.Context, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.written) >= redisLogPeriod {
		l.logger.WarnContext(ctx, "Redis client", slog.String("message", fmt.Sprintf(format, args...)), slog.Int("dropped", l.dropped))
		l.written, l.dropped = now, 0
		return
	}
	l.dropped++
}
