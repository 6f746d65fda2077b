package service

import (
	"log/slog"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// redisLogPeriod is the time between two lines about the same fault of Redis.
const redisLogPeriod = time.Minute

// circuitLog writes to the log when Redis cannot be used, and when it answers again.
// During an outage the circuit opens again after each probe, every few seconds, so the
// same fault is written once in each redisLogPeriod.
type circuitLog struct {
	logger *slog.Logger
	mode   string // on_redis_failure

	mu      sync.Mutex
	fault   string    // the last one that was written; "" if Redis answered after it
	written time.Time // when
}

// changed is for [failover.Options] OnChange.
func (l *circuitLog) changed(change failover.Change) {
	switch {
	case change.To == failover.CircuitOpen && change.Cause != nil:
		l.failed(change.Cause)
	case change.To == failover.CircuitClosed:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.fault = ""
		l.logger.Info("Redis answers again", slog.String("limits", "shared"))
	}
}

func (l *circuitLog) failed(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fault, now := diagnose(cause), time.Now()
	if fault.what == l.fault && now.Sub(l.written) < redisLogPeriod {
		return
	}
	l.fault, l.written = fault.what, now
	l.logger.Error("Redis cannot be used: "+fault.what, slog.String("do", fault.do),
		slog.String("limits", l.mode), slog.Any("error", cause))
}
